"""Stored predictions as a table."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

from peakgate.client.render.answer import verdict_word
from peakgate.client.render.text import escape
from peakgate.client.render.units import gb
from peakgate.v1.prediction_pb2 import Observation
from peakgate.v1.prediction_service_pb2 import PredictionSummary

_NO_EDGE = 10_000
"""Wider than any row."""


def print_jobs(console: Console, predictions: Sequence[PredictionSummary]) -> None:
    """One row a prediction: what was said, what was seen, and how far apart the two are."""
    if not predictions:
        console.print("No predictions are stored yet.")
        return
    table = Table(box=None, header_style="bold", padding=(0, 2, 0, 0))
    for heading in ("prediction", "job", "made", "verdict"):
        table.add_column(heading, no_wrap=True)
    for heading in ("predicted", "observed", "difference"):
        table.add_column(heading, justify="right", no_wrap=True)
    for heading in ("state", "seen as"):
        table.add_column(heading, no_wrap=True)
    for each in predictions:
        table.add_row(*_cells(each))
    whole = Measurement.get(console, console.options.update(max_width=_NO_EDGE), table).maximum
    shown_width = console.width
    console.width = max(shown_width, whole)  # the terminal wraps a long line; a name that is cut short finds nothing
    console.print(table)
    console.width = shown_width
    console.print("\npredicted and observed: memory of the process on the fullest GPU, as nvidia-smi shows it", style="dim")
    console.print("seen as: what that says of the need, by which source (A the driver's accounting … D a coarse sample)", style="dim")


def _cells(summary: PredictionSummary) -> tuple[str, ...]:
    predicted, observed = summary.peak.device_bytes, summary.observed_device_bytes
    difference = f"{observed / predicted - 1:+.1%}" if observed and predicted else ""
    return (
        escape(summary.prediction),
        escape(summary.job_name),
        summary.create_time.ToDatetime().strftime("%Y-%m-%d %H:%M UTC"),
        verdict_word(summary.verdict),
        gb(predicted),
        gb(observed) if observed else "not seen",
        difference,
        escape(summary.state),
        escape(_seen_as(summary.observation)) if summary.HasField("observation") else "",
    )


def _seen_as(observation: Observation) -> str:
    """What the peak says of the need and what it rests on, such as `exact, accounting (A)` or `dropped: CARD_FULL, sampled`."""
    reason = f": {observation.reason}" if observation.reason else ""
    source = f", {observation.source}" if observation.source else ""
    confidence = f" ({observation.confidence})" if observation.confidence not in ("", "X") else ""
    return f"{observation.kind}{reason}{source}{confidence}"
