"""What makes a job fit, as text for a person."""

from __future__ import annotations

from rich.console import Console

from peakgate.client.render.answer import print_line, print_suggestions
from peakgate.client.render.text import escape
from peakgate.v1.prediction_service_pb2 import SuggestResponse


def print_advice(console: Console, label: str, advice: SuggestResponse) -> None:
    """The job as it is, then each change with its result, then the two limits."""
    print_line(console, label, advice.prediction)
    print_suggestions(console, advice.suggestions)
    console.print()
    largest = advice.largest_micro_batch_size
    console.print(f"  Largest micro-batch that fits as the job is: {largest or 'none, not even 1'}")
    console.print(f"  Smallest GPU of the catalogue on which the job fits as it is: {escape(advice.smallest_gpu) or 'none'}")
    if advice.solved_field:
        console.print(f"  {escape(_solved(advice))}")


def _solved(advice: SuggestResponse) -> str:
    if not advice.solved_value:
        return f"{advice.solved_field}: no value makes the job fit"
    return f"{advice.solved_field}: the {advice.solved_limit or 'extreme'} value that fits is {advice.solved_value}"
