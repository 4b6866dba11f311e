"""A diagnosis as text for a person: what ran out, when, which part, what to do, and what is not worth trying."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.padding import Padding
from rich.table import Table

from peakgate.client.diagnose.diagnosis import Diagnosis
from peakgate.client.diagnose.stages import Stage
from peakgate.client.diagnose.where import telling_frame
from peakgate.client.render.answer import print_list
from peakgate.client.render.suggestions import print_hanging, print_suggestion
from peakgate.client.render.text import escape
from peakgate.client.render.units import gb, gb_and_gib

CATEGORY_WORDS = {
    "parameters": "weights",
    "gradients": "gradients",
    "master_weights": "the optimizer's float32 copy of the weights",
    "optimizer_states": "the optimizer's states",
    "activations": "what is saved for the backward pass",
    "logits": "logits and loss",
    "temporaries": "memory of one operation",
    "communication": "buffers of collectives, gathered weights",
    "fragmentation": "gaps of PyTorch's allocator",
    "runtime": "CUDA context and libraries",
}
TOLD_BY = {"traceback": "by the traceback", "size": "by the size alone", "user": "as you say", "message": "by the message"}
_SUGGESTIONS = 5
_SIZES = (("tried", "asked for"), ("free", "free"), ("allocated", "in tensors"), ("capacity", "the card's total"))


def print_diagnosis(console: Console, found: Diagnosis) -> None:
    """The whole diagnosis."""
    _print_text(console, f"[bold red]OUT OF MEMORY[/]  {escape(found.stage.when)}{_headline(found)}")
    _print_text(console, escape(found.stage.why), indent=2)
    _print_facts(console, found)
    print_list(console, "Notes", found.notes)
    _print_advice(console, found)
    _print_causes(console, found.stage)
    if found.further:
        console.print(f"\n  It failed {escape(found.further.when)}: {escape(found.further.why)}", soft_wrap=not console.is_terminal)
        _print_causes(console, found.further)


def _headline(found: Diagnosis) -> str:
    return f": {found.category} ({CATEGORY_WORDS.get(found.category, found.category)})" if found.category else ""


def _print_text(console: Console, markup: str, indent: int = 0) -> None:
    """Wrapped between words on a terminal; one line in a pipe, for whoever searches in it."""
    if console.is_terminal:
        console.print(Padding(markup, (0, 0, 0, indent)))
    else:
        console.print(f"{' ' * indent}{markup}", soft_wrap=True)


def _print_facts(console: Console, found: Diagnosis) -> None:
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    for name, text in _facts(found):
        table.add_row(name, escape(text))
    if table.row_count:
        console.print()
        console.print(Padding(table, (0, 0, 0, 2), expand=False))


def _facts(found: Diagnosis) -> Iterator[tuple[str, str]]:
    failure = found.failure
    if failure is not None:
        yield "what", failure.message.kind.title + (f" (GPU {failure.message.device})" if failure.message.device is not None else "")
        sizes = [f"{words} {gb_and_gib(size)}" for name, words in _SIZES if (size := failure.message.bytes_of(name)) is not None]
        yield from (("sizes" if not number else "", size) for number, size in enumerate(sizes))
        frame = telling_frame(failure.frames, found.stage.name)
        where = f" ({frame})" if frame else ""
        yield "when", f"{found.stage.when}, {TOLD_BY[found.told_by]}{where}" if found.told_by else found.stage.when
    for each in found.tensors:
        sign = "=" if each.exact else "about"
        yield "tensor", f"{each.item}: {each.formula} {sign} {gb(each.bytes)}"
    for line in found.lines:
        yield "predicted", f"{line.item}: {gb(line.bytes)} at the peak ({line.category})"


def _print_advice(console: Console, found: Diagnosis) -> None:
    shown = found.suggestions[:_SUGGESTIONS]
    if shown:
        console.print(f"\n  What acts on it in {escape(found.label)}: upper bound, room on the card, step time", soft_wrap=True)
        for number, each in enumerate(shown, start=1):
            print_suggestion(console, each, f"{number}.")
    print_list(console, "What acts on it" if not shown else "What acts on it, in general", found.stage.helps)
    rows = [f"{what}: {why}" for what, why in found.stage.helps_not]
    print_list(console, "What does not help", rows)


def _print_causes(console: Console, stage: Stage) -> None:
    if stage.causes:
        console.print("\n  It is one of")
    for number, each in enumerate(stage.causes, start=1):
        print_hanging(console, escape(f"{each.name}: {each.sign}"), f"{number}.")
        print_hanging(console, escape(each.remedy), "-", 7)
