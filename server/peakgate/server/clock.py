"""Time as the service writes it down: microseconds since the epoch."""

from __future__ import annotations

import time
from collections.abc import Callable

from google.protobuf.timestamp_pb2 import Timestamp

MICROSECONDS = 1_000_000
DAY_US = 24 * 3600 * MICROSECONDS
Clock = Callable[[], int]
"""Microseconds since the epoch; comes in by argument."""


def now_us() -> int:
    """The system's clock."""
    return time.time_ns() // 1000


def to_timestamp(moment_us: int) -> Timestamp:
    """A moment as a message."""
    return Timestamp(seconds=moment_us // MICROSECONDS, nanos=moment_us % MICROSECONDS * 1000)


def from_timestamp(timestamp: Timestamp) -> int:
    """A message as a moment."""
    return timestamp.seconds * MICROSECONDS + timestamp.nanos // 1000
