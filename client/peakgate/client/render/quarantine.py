"""Observations that were kept out, as a table, and what became of one that was released."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from peakgate.client.render.text import escape
from peakgate.client.render.units import gb, utc
from peakgate.v1.calibration_service_pb2 import QuarantinedObservation, ReleaseObservationResponse


def print_quarantine(console: Console, observations: Sequence[QuarantinedObservation], *, group: str = "", reason: str = "") -> None:
    """A block each: a name that is cut short finds nothing, and a message is a sentence. `group` and `reason` are what was asked for."""
    if not observations:
        asked = (f" with reason {reason}" if reason else "") + (f" of group {group}" if group else "")
        hint = "; without --reason and --group all are listed" if asked else ""
        console.print(f"Nothing{escape(asked)} is kept out{hint}.")
        return
    for each in observations:
        seen = each.observation
        attempt = f"job {escape(seen.job)}" + (f", attempt {seen.restart}" if seen.restart else "")
        when = utc(each.quarantine_time)
        console.print(f"[bold]{escape(each.prediction)}[/bold] {attempt}, {when}: {each.reason}")
        console.print(f"  {escape(each.message)}")
        console.print(
            f"  predicted {gb(each.predicted_bytes)}, observed {gb(each.observed_bytes)}, group {escape(each.group)}", style="dim"
        )
    console.print("\nTo let one be learned all the same: peakgate calibration release PREDICTION --reason TEXT", style="dim")


def print_release(console: Console, prediction: str, done: ReleaseObservationResponse) -> None:
    """What was learned, by which version."""
    seen = done.observation
    console.print(
        f"{escape(prediction)} (job {escape(seen.job)}): learned as {seen.kind} by calibration {escape(done.calibration_version)}"
    )
