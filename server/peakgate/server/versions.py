"""Why a version of the calibration is kept, and what a person is told of it. Pure."""

from __future__ import annotations

from datetime import UTC, datetime

from peakgate.calibration import Calibrator
from peakgate.calibration.drift import RENEWED
from peakgate.server.clock import DAY_US, MICROSECONDS
from peakgate.server.store.records import ALARM, DAILY

HISTORY_DAYS = 400.0
"""That versions are kept which are kept for a reason: a year, and time to look back at it."""

MOST_NAMED = 3
"""Levels of a note."""


def kind_and_note(before: Calibrator, after: Calibrator, *, before_us: int, now_us: int) -> tuple[str, str]:
    """Of a version that is made now of one that was made at `before_us` (0: of none).

    An alarm when a level has moved since, daily when it is the first of a UTC day on its line, else empty. A version of the software that
    a level had not met is told, and kept for no longer: an upgrade of a cluster would keep one for each of its groups.
    """
    raised = _raised(before, after)
    more = f" and {len(raised) - MOST_NAMED} more" if len(raised) > MOST_NAMED else ""
    note = "; ".join(f"{name}: {what}" for name, what in raised[:MOST_NAMED]) + more
    is_new_day = not before_us or before_us // DAY_US != now_us // DAY_US
    return ALARM if any(what != RENEWED for _, what in raised) else DAILY if is_new_day else "", note


def switch_note(*, at_us: int, by: str, reason: str) -> str:
    """What a note says of a switch behind the name of a version: ` on 2030-01-31 12:00 UTC by anna: misses since the upgrade`."""
    moment = datetime.fromtimestamp(at_us // MICROSECONDS, UTC).strftime("%Y-%m-%d %H:%M UTC")
    return f" on {moment}" + (f" by {by}" if by else "") + (f": {reason}" if reason else "")


def _raised(before: Calibrator, after: Calibrator) -> list[tuple[str, str]]:
    """(level, what its newest alarm was) of each with more alarms than before; those that have moved come first."""
    earlier, later = before.snapshot().nodes, after.snapshot().nodes
    told = after.moved
    found = [(name, told[name]) for name in told if later[name].alarms > (earlier[name].alarms if name in earlier else 0)]
    return sorted(found, key=lambda each: (each[1] == RENEWED, each[0]))
