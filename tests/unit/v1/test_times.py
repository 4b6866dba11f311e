"""Moments and stretches of time as messages."""

from __future__ import annotations

import pytest

from peakgate.v1.times import duration, timestamp


@pytest.mark.parametrize(
    ("seconds", "want"),
    [
        (0.0, (0, 0)),
        (1_800_000_000.123456, (1_800_000_000, 123_456_000)),
        (1_800_000_000.9999999, (1_800_000_001, 0)),
        (0.0000004, (0, 0)),
    ],
)
def test_seconds_are_rounded_to_the_microsecond(seconds: float, want: tuple[int, int]) -> None:
    """Moments and stretches alike; what rounds up to a whole second carries over."""
    moment, stretch = timestamp(seconds), duration(seconds)
    assert (moment.seconds, moment.nanos) == (stretch.seconds, stretch.nanos) == want
