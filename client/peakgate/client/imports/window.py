"""The stretch of time that an import looks at."""

from __future__ import annotations

import re
from datetime import datetime

from peakgate.client.errors import InputError

AGO = re.compile(r"(\d+)([smhdw])")
SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


def moment(text: str, *, now: float) -> int:
    """Seconds since the epoch of `7d` (so long ago), a number, or a time such as 2026-05-01T12:00:00Z. Raises InputError."""
    ago = AGO.fullmatch(text)
    if ago:
        return int(now - int(ago[1]) * SECONDS[ago[2]])
    if text.isdigit():
        return int(text)
    try:
        return int(datetime.fromisoformat(text).astimezone().timestamp())
    except ValueError as error:
        raise InputError(f"{text!r} is no time: state 7d, seconds since the epoch, or 2026-05-01T12:00:00Z", reason="USAGE") from error


def window(since: str, until: str, *, step_seconds: int, now: float) -> tuple[int, int]:
    """(start, end) on multiples of the step, so that the same window is read the same way again. Raises InputError."""
    start, end = (moment(text, now=now) // step_seconds * step_seconds for text in (since, until))
    if start >= end:
        raise InputError(f"the window ends ({until}) before it begins ({since})", reason="USAGE")
    return start, end
