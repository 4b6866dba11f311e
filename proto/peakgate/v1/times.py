"""Seconds since the epoch as messages: what agents and imports report."""

from __future__ import annotations

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

MICROSECONDS = 1_000_000

LATEST_SECONDS = 253_402_300_799
"""The last second of the year 9999, beyond which no time can be written (google/protobuf/timestamp.proto)."""


def timestamp(seconds: float) -> Timestamp:
    """Seconds since the epoch, to the microsecond, as protobuf's Timestamp."""
    whole, rest = divmod(round(seconds * MICROSECONDS), MICROSECONDS)
    return Timestamp(seconds=whole, nanos=rest * 1000)


def duration(seconds: float) -> Duration:
    """Seconds, not negative, to the microsecond, as protobuf's Duration."""
    whole, rest = divmod(round(seconds * MICROSECONDS), MICROSECONDS)
    return Duration(seconds=whole, nanos=rest * 1000)
