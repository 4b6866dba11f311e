"""The whole of an answer as text: what `print_answer` shows, with the step in time and the worst rank."""

from __future__ import annotations

from rich.console import Console

from peakgate.client.render.answer import print_answer
from peakgate.client.render.text import escape
from peakgate.client.render.timeline import timeline_chart
from peakgate.v1.prediction_pb2 import PredictResponse


def print_explanation(console: Console, label: str, answer: PredictResponse) -> None:
    """Verdict, peaks, ledger, suggestions, assumptions, then the timeline and why this rank is the worst."""
    print_answer(console, label, answer)
    chart = timeline_chart(answer.timeline)
    if chart:
        console.print("\n  One training step in steady state: memory allocated, time from left to right")
        for line in chart:
            console.print(f"    {escape(line)}", soft_wrap=True)
    console.print(f"\n  Worst rank: pipeline stage {answer.rank.pipeline_stage}. {escape(answer.rank.reason)}", soft_wrap=True)
    margin = answer.calibration
    learned = f"calibration {margin.version or 'none'}, group {margin.group or 'none'}, {margin.observations} observed jobs"
    console.print(f"  Margin: {escape(learned)}", soft_wrap=True)
