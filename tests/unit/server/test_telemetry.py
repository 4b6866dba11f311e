"""Events of jobs, as they come in."""

from __future__ import annotations

import pytest
from google.protobuf.timestamp_pb2 import Timestamp

from peakgate.server.telemetry import read_event
from peakgate.v1.telemetry_service_pb2 import ReportJobEventRequest

RECEIVED_US = 1_800_000_000_000_000


@pytest.mark.parametrize(
    ("seconds", "want_us"), [(None, RECEIVED_US), (1_700_000_000, 1_700_000_000_000_000), (1_900_000_000, RECEIVED_US)]
)
def test_no_event_lies_ahead(seconds: int | None, want_us: int) -> None:
    """A clock that is ahead by a year would have its job waited for, and its rows kept, that long."""
    request = ReportJobEventRequest(job="7", event="finished", event_time=None if seconds is None else Timestamp(seconds=seconds))
    assert read_event(request, received_us=RECEIVED_US).event_us == want_us
