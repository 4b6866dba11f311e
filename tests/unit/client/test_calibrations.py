"""Calls of the calibration service to one that is frozen: the address takes connections, and nobody ever answers."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator

import grpc
import pytest

from peakgate.client.calibrations import Calibrations
from peakgate.client.errors import ServiceError
from peakgate.v1.calibration_report_pb2 import ReportCalibrationRequest
from peakgate.v1.calibration_service_pb2 import ReleaseObservationRequest

TIMEOUT_SECONDS = 0.3


@pytest.fixture
def calibrations() -> Iterator[Calibrations]:
    """Calls that give up soon, to a socket that listens and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as frozen, grpc.insecure_channel(f"127.0.0.1:{frozen.getsockname()[1]}") as channel:
        yield Calibrations(channel, timeout_seconds=TIMEOUT_SECONDS)


CALLS: dict[str, Callable[[Calibrations], object]] = {
    "list": lambda found: found.versions(limit=5, chosen_only=True),
    "show": lambda found: found.version(),
    "promote": lambda found: found.promote("1.5", by="ada", reason=""),
    "rollback": lambda found: found.roll_back(by="ada", reason=""),
    "shadow": lambda found: found.shadow(),
    "end shadow": lambda found: found.end_shadow(),
    "quarantine": lambda found: found.quarantine(limit=5),
    "release": lambda found: found.release(ReleaseObservationRequest(prediction="predictions/1")),
    "report": lambda found: found.report(ReportCalibrationRequest()),
    "simulate": lambda found: found.simulate(()),
    "export": lambda found: list(found.export_history()),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_no_call_waits_for_a_frozen_service(calibrations: Calibrations, call: Callable[[Calibrations], object]) -> None:
    """Also those that may work for minutes once somebody answers: an error of exit status 4 within the usual time, which says why."""
    started = time.monotonic()
    with pytest.raises(ServiceError, match="did not answer in time") as raised:
        call(calibrations)
    assert (raised.value.code, raised.value.exit_status) == ("DEADLINE_EXCEEDED", 4)
    assert time.monotonic() - started < TIMEOUT_SECONDS + 2
