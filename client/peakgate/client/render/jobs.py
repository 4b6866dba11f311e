"""Stored predictions as a table."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

from peakgate.client.render.answer import verdict_word
from peakgate.client.render.tables import plain_table
from peakgate.client.render.text import escape
from peakgate.client.render.units import gb, utc
from peakgate.v1.prediction_pb2 import Observation
from peakgate.v1.prediction_service_pb2 import PredictionSummary

_NO_EDGE = 10_000
"""Wider than any row."""


_OUTCOMES = {"fitted": "it fitted", "oom": "OOM", "unknown": "unknown yet"}


def print_jobs(console: Console, predictions: Sequence[PredictionSummary]) -> None:
    """One row a prediction: what was said, what was seen, and how far apart the two are."""
    if not predictions:
        console.print("No predictions are stored yet.")
        return
    table = plain_table()
    for heading in ("prediction", "job", "made", "verdict"):
        table.add_column(heading, no_wrap=True)
    for heading in ("predicted", "observed", "difference"):
        table.add_column(heading, justify="right", no_wrap=True)
    for heading in ("state", "seen as"):
        table.add_column(heading, no_wrap=True)
    has_users = any(each.user for each in predictions)
    if has_users:
        table.add_column("user", no_wrap=True)
    for each in predictions:
        table.add_row(*_cells(each), *((escape(each.user),) if has_users else ()))
    _print_whole(console, table)
    console.print("\npredicted and observed: memory of the process on the fullest GPU, as nvidia-smi shows it", style="dim")
    console.print("seen as: what that says of the need, by which source (A the driver's accounting … D a coarse sample)", style="dim")


def print_tries(console: Console, predictions: Sequence[PredictionSummary]) -> None:
    """One row a try: whose, when, why, what the rejection said, and what came of it."""
    if not predictions:
        console.print("No rejected job was let run all the same yet.")
        return
    table = plain_table()
    for heading in ("prediction", "user", "tried", "job"):
        table.add_column(heading, no_wrap=True)
    for heading in ("needed", "upper bound", "card", "chance of OOM", "observed"):
        table.add_column(heading, justify="right", no_wrap=True)
    for heading in ("came of it", "reason"):
        table.add_column(heading, no_wrap=True)
    for each in predictions:
        table.add_row(*_try_cells(each))
    _print_whole(console, table)
    console.print("\nneeded, upper bound, card: what the rejection rests on; observed: the highest memory on one GPU since", style="dim")


def _try_cells(summary: PredictionSummary) -> tuple[str, ...]:
    peak, observed = summary.peak, summary.observed_device_bytes
    return (
        escape(summary.prediction),
        escape(summary.user),
        utc(summary.tried.create_time),
        escape(summary.job_name),
        gb(peak.required_bytes),
        gb(peak.bound_bytes),
        gb(summary.capacity.usable_bytes),
        f"{peak.oom_probability:.0%}",
        gb(observed) if observed else "not seen",
        _OUTCOMES.get(summary.tried.outcome, escape(summary.tried.outcome)),
        escape(summary.tried.reason),
    )


def _print_whole(console: Console, table: Table) -> None:
    whole = Measurement.get(console, console.options.update(max_width=_NO_EDGE), table).maximum
    shown_width = console.width
    console.width = max(shown_width, whole)  # the terminal wraps a long line; a name that is cut short finds nothing
    console.print(table)
    console.width = shown_width


def _cells(summary: PredictionSummary) -> tuple[str, ...]:
    predicted, observed = summary.peak.device_bytes, summary.observed_device_bytes
    difference = f"{observed / predicted - 1:+.1%}" if observed and predicted else ""
    return (
        escape(summary.prediction),
        escape(summary.job_name),
        utc(summary.create_time),
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
