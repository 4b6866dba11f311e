"""Why a version of the calibration is kept, and what a person is told of it. Pure."""

from __future__ import annotations

from datetime import UTC, datetime

from peakgate.calibration import Calibrator
from peakgate.server.clock import MICROSECONDS
from peakgate.server.store.records import ALARM, DAILY

DAY_US = 24 * 3600 * MICROSECONDS

HISTORY_DAYS = 400.0
"""That versions are kept which are kept for a reason: a year, and time to look back at it."""

MOST_NAMED = 3
"""Levels of a note."""


def kind_and_note(before: Calibrator, after: Calibrator, *, before_us: int, now_us: int) -> tuple[str, str]:
    """Of a version that is made now of one that was made at `before_us` (0: of none).

    An alarm when a level has moved since, daily when it is the first of a UTC day on its line, else empty.
    """
    moved = _moved(before, after)
    if moved:
        more = f" and {len(moved) - MOST_NAMED} more" if len(moved) > MOST_NAMED else ""
        return ALARM, "; ".join(moved[:MOST_NAMED]) + more
    return (DAILY if not before_us or before_us // DAY_US != now_us // DAY_US else ""), ""


def switch_note(*, at_us: int, by: str, reason: str) -> str:
    """What a note says of a switch behind the name of a version: ` on 2030-01-31 12:00 UTC by anna: misses since the upgrade`."""
    moment = datetime.fromtimestamp(at_us // MICROSECONDS, UTC).strftime("%Y-%m-%d %H:%M UTC")
    return f" on {moment}" + (f" by {by}" if by else "") + (f": {reason}" if reason else "")


def _moved(before: Calibrator, after: Calibrator) -> list[str]:
    """`group x: needs rose` of each level with more alarms than before."""
    earlier, later = before.snapshot().nodes, after.snapshot().nodes
    told = after.moved
    return [f"{name}: {told[name]}" for name in sorted(told) if later[name].alarms > (earlier[name].alarms if name in earlier else 0)]
