"""What makes a job fit, as text for a person."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.padding import Padding

from peakgate.client.render.answer import print_list, print_verdict
from peakgate.client.render.suggestions import changes_text, print_hanging, print_suggestion, print_suggestions
from peakgate.client.render.tables import plain_table
from peakgate.client.render.text import escape
from peakgate.client.render.units import gb, step_time
from peakgate.v1.prediction_service_pb2 import Shortfall, SuggestResponse

HEADS = ("Bound", "Room", "Step time", "Plan")


def print_advice(console: Console, label: str, advice: SuggestResponse) -> None:
    """The job as it is, each change with its result, what is missing where nothing fits, then the limits."""
    print_verdict(console, label, advice.prediction)
    print_suggestions(console, advice.suggestions, reasons=True)
    if advice.HasField("shortfall"):
        _print_shortfall(console, advice.shortfall, advice.plans)
    _print_front(console, advice)
    print_list(console, "Limits", _limits(advice))
    print_list(console, "Warnings", advice.prediction.warnings)
    print_list(console, "Notes", advice.notes)


def _print_shortfall(console: Console, shortfall: Shortfall, plans: int) -> None:
    considered = f" of {plans:,} plans" if plans else ""
    largest = f"; its largest part is {shortfall.item} ({shortfall.category})" if shortfall.item else ""
    console.print("\n  Nothing fits")
    text = f"the closest{considered} is {gb(shortfall.bytes)} too large{largest}"
    print_hanging(console, escape(text), "-")
    if shortfall.HasField("closest"):
        print_suggestion(console, shortfall.closest, "-")


def _print_front(console: Console, advice: SuggestResponse) -> None:
    """Memory against time: each plan is the fastest of its memory."""
    if not advice.pareto:
        return
    table = plain_table(*HEADS)
    for each in advice.pareto:
        room = ("" if each.headroom_bytes >= 0 else "-") + gb(abs(each.headroom_bytes))
        table.add_row(gb(each.bound_bytes), room, step_time(each.relative_step_time), escape(each.title or changes_text(each)))
    considered = f", of {advice.plans:,} plans" if advice.plans else ""
    console.print(f"\n  Less memory for more time: what no other plan beats in both{considered}")
    console.print(Padding(table, (0, 0, 0, 4), expand=False))


def _limits(advice: SuggestResponse) -> Iterator[str]:
    largest = advice.largest_micro_batch_size
    yield f"Largest micro-batch that fits as the job is: {largest or 'none, not even 1'}"
    yield f"Smallest GPU or MIG slice for the job as it is: {advice.smallest_gpu or 'none'}"
    if advice.cheapest_gpu:
        yield f"Cheapest GPU on offer for the job as it is: {advice.cheapest_gpu}"
    if advice.memory_fraction:
        percent = round(100 * advice.memory_fraction)
        yield f"Share of the card to ask for: {advice.memory_fraction:.2f} (gpu-fraction), {percent} (gpumem-percentage)"
    if advice.solved_field:
        yield _solved(advice)


def _solved(advice: SuggestResponse) -> str:
    if not advice.solved_limit:
        return f"{advice.solved_field}: no value makes the job fit"
    return f"{advice.solved_field}: the {advice.solved_limit} value that fits is {_number(advice)}"


def _number(advice: SuggestResponse) -> str:
    """The integer, or the number of a field that is none; both are 0 where 0 is the answer."""
    return str(advice.solved_value) if advice.solved_value else f"{advice.solved_number:g}"
