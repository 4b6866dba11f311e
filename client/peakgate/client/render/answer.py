"""An answer as text for a person who has never seen one."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.padding import Padding
from rich.table import Table

from peakgate.client.errors import PeakgateError
from peakgate.client.render.card import card_words
from peakgate.client.render.suggestions import print_hanging, print_suggestions
from peakgate.client.render.text import escape
from peakgate.client.render.units import bar, count, gb, gb_and_gib
from peakgate.v1.prediction_pb2 import LedgerLine, Peak, PredictResponse, Verdict

_STYLES = {Verdict.VERDICT_ADMIT: "bold green", Verdict.VERDICT_REJECT: "bold red", Verdict.VERDICT_UNDECIDED: "bold yellow"}
_BAR_CELLS = 24
_LEDGER_LINES = 12
_SUGGESTIONS = 5


def verdict_word(verdict: Verdict.ValueType) -> str:
    """ADMIT, REJECT or UNDECIDED."""
    return Verdict.Name(verdict).removeprefix("VERDICT_")


def print_line(console: Console, label: str, answer: PredictResponse) -> None:
    """One line for one job of many."""
    word = verdict_word(answer.verdict)
    stored = f" (stored as {escape(answer.prediction)})" if answer.prediction else ""
    console.print(f"[{_style(answer)}]{word:<9}[/] {escape(label)}: {escape(answer.reason)}{stored}", soft_wrap=True)


def print_error(console: Console, label: str, error: PeakgateError) -> None:
    """A job that could not be judged: every bad field with its remedy."""
    console.print(f"[bold red]ERROR[/]     {escape(label)}: {escape(_headline(error))} ({escape(error.reason)})", soft_wrap=True)
    for field, description in error.fields:
        console.print(f"            {escape(field)} {escape(description)}", soft_wrap=True)


def _headline(error: PeakgateError) -> str:
    """The message, unless it only joins what stands below it field by field."""
    said_below = error.fields and all(description in error.message for _, description in error.fields)
    if not said_below:
        return error.message
    return f"{len(error.fields)} bad field{'s' if len(error.fields) != 1 else ''}"


def print_answer(console: Console, label: str, answer: PredictResponse, *, brief: bool = False) -> None:
    """The whole answer: verdict, peaks, what the memory consists of, what to change, what was assumed."""
    print_verdict(console, label, answer)
    _print_peaks(console, answer)
    if not brief:
        print_ledger(console, answer.ledger)
        print_suggestions(console, answer.suggestions, most=_SUGGESTIONS)
        print_list(console, "Warnings", answer.warnings)
        print_list(console, "Notes", answer.notes)
        print_list(console, "Assumed, because the job does not say", answer.assumptions)
    if answer.prediction:
        console.print(f"\n  Stored as {escape(answer.prediction)}", soft_wrap=True)
        console.print("  Set PEAKGATE_PREDICTION to that name in the job's environment: the agent then compares it with what happens.")


def print_verdict(console: Console, label: str, answer: PredictResponse) -> None:
    """The verdict, and below it the reason."""
    console.print(f"[{_style(answer)}]{verdict_word(answer.verdict)}[/]  {escape(label)}", soft_wrap=True)
    if console.is_terminal:
        console.print(Padding(escape(answer.reason), (0, 0, 0, 2)))
    else:  # one line, for whoever searches in it
        console.print(f"  {escape(answer.reason)}", soft_wrap=True)


def _style(answer: PredictResponse) -> str:
    return _STYLES.get(answer.verdict, "bold")


def _print_peaks(console: Console, answer: PredictResponse) -> None:
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    for name, size, meaning in _peak_rows(answer):
        table.add_row(name, size, meaning)
    console.print()
    console.print(Padding(table, (0, 0, 0, 2), expand=False))


def _peak_rows(answer: PredictResponse) -> Iterable[tuple[str, str, str]]:
    peak = answer.peak
    yield "needed", gb_and_gib(peak.required_bytes), "smallest card on which the step completes"
    yield "upper bound", gb_and_gib(peak.bound_bytes), _bound_meaning(answer)
    if answer.capacity.total_bytes:
        yield "card", gb_and_gib(answer.capacity.usable_bytes), f"usable of {escape(card_words(answer.capacity, 'the stated card'))}"
    yield from _measured_rows(peak)
    if answer.peak_phase:
        yield "peak in", escape(answer.peak_phase), _phase_meaning(answer)
    if answer.model.parameters:
        yield "parameters", count(answer.model.parameters), f"of which {count(answer.model.trainable_parameters)} trained"


def _measured_rows(peak: Peak) -> Iterable[tuple[str, str, str]]:
    yield "allocated", gb_and_gib(peak.allocated_bytes), "torch.cuda.max_memory_allocated will show this"
    yield "reserved", gb_and_gib(peak.reserved_bytes), "torch.cuda.max_memory_reserved, on a card with room"
    yield "on the device", gb_and_gib(peak.device_bytes), "nvidia-smi will show this for the process"
    if peak.host_bytes:
        yield "host memory", gb_and_gib(peak.host_bytes), "main memory of a node, for what is offloaded"


def _bound_meaning(answer: PredictResponse) -> str:
    seen = answer.calibration.observations
    learned = f"learned from {seen} observed job{'s' if seen != 1 else ''} of its kind" if seen else "no job of its kind was observed yet"
    return f"holds in {answer.peak.coverage:.0%} of jobs ({learned})"


def _phase_meaning(answer: PredictResponse) -> str:
    first = f"; the first that does not fit is {answer.oom_phase}" if answer.oom_phase else ""
    return f"the phase of the step with the highest memory{first}"


def print_ledger(console: Console, ledger: Iterable[LedgerLine]) -> None:
    """What fills the worst GPU at the peak, largest first, with bars."""
    lines = sorted(ledger, key=lambda line: -line.bytes)
    total = sum(line.bytes for line in lines)
    if not total:
        return
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
    for line in lines[:_LEDGER_LINES]:
        part = line.bytes / total
        table.add_row(escape(line.category), escape(line.item), gb(line.bytes), f"{part:4.0%}", bar(part, _BAR_CELLS))
    rest = sum(line.bytes for line in lines[_LEDGER_LINES:])
    if rest:
        others = f"{len(lines) - _LEDGER_LINES} smaller parts"
        table.add_row("others", others, gb(rest), f"{rest / total:4.0%}", bar(rest / total, _BAR_CELLS))
    console.print(f"\n  What the memory of the worst GPU consists of at the peak ({gb(total)} in all)")
    console.print(Padding(table, (0, 0, 0, 4), expand=False))


def print_list(console: Console, title: str, lines: Iterable[str]) -> None:
    """A headline and a line for each; nothing when there are none."""
    rows = list(lines)
    if rows:
        console.print(f"\n  {title}")
    for row in rows:
        print_hanging(console, escape(row), "-")
