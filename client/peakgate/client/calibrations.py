"""Calls of the calibration service."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import grpc

from peakgate.client.calling import LARGEST_PAGE, called, paged
from peakgate.v1.calibration_report_pb2 import ReportCalibrationRequest, ReportCalibrationResponse
from peakgate.v1.calibration_service_pb2 import (
    Calibration,
    GetCalibrationRequest,
    ListCalibrationsRequest,
    ListQuarantineRequest,
    PromoteCalibrationRequest,
    PromoteCalibrationResponse,
    QuarantinedObservation,
    ReleaseObservationRequest,
    ReleaseObservationResponse,
    RollbackCalibrationRequest,
    RollbackCalibrationResponse,
    ShadowCalibrationRequest,
)
from peakgate.v1.calibration_service_pb2_grpc import CalibrationServiceStub
from peakgate.v1.calibration_simulation_pb2 import (
    ExportHistoryRequest,
    PastAttempt,
    SimulateCalibrationRequest,
    SimulateCalibrationResponse,
)
from peakgate.v1.times import timestamp

REPORT_TIMEOUT_SECONDS = 120.0
"""An audit reads every attempt of its time: 100,000 take some seconds."""

SIMULATION_TIMEOUT_SECONDS = 3600.0
"""A hundred thousand attempts under ten policies take some minutes; who waits no longer ends the work."""

RETELL_TIMEOUT_SECONDS = 1800.0
"""For a shadow that learns everything again: a thousand observations take a second or two."""


class Calibrations:
    """Versions of the margin. Every method raises ServiceError.

    What may work for minutes first asks for something small within the usual deadline: a service or a database that is frozen is told as
    soon by it as by any other call.
    """

    def __init__(self, channel: grpc.Channel, *, timeout_seconds: float) -> None:
        self._stub = CalibrationServiceStub(channel)
        self._timeout_seconds = timeout_seconds

    def versions(self, *, limit: int, chosen_only: bool) -> list[Calibration]:
        """The newest versions, at most `limit`; `chosen_only`: those in use, and those that are kept for a reason."""

        def page(size: int, token: str) -> tuple[Sequence[Calibration], str]:
            request = ListCalibrationsRequest(page_size=size, page_token=token, chosen_only=chosen_only)
            answer = called(lambda: self._stub.ListCalibrations(request, timeout=self._timeout_seconds))
            return answer.calibrations, answer.next_page_token

        return paged(page, limit=limit)

    def version(self, name: str = "") -> Calibration:
        """One version; without a name the active one."""
        return called(lambda: self._stub.GetCalibration(GetCalibrationRequest(version=name), timeout=self._timeout_seconds)).calibration

    def promote(self, version: str, *, by: str, reason: str) -> PromoteCalibrationResponse:
        """Makes a version the active one."""
        request = PromoteCalibrationRequest(version=version, by=by, reason=reason)
        return called(lambda: self._stub.PromoteCalibration(request, timeout=self._timeout_seconds))

    def roll_back(self, *, by: str, reason: str) -> RollbackCalibrationResponse:
        """Goes back to an earlier version."""
        request = RollbackCalibrationRequest(by=by, reason=reason)
        return called(lambda: self._stub.RollbackCalibration(request, timeout=self._timeout_seconds))

    def shadow(self, version: str = "") -> Calibration:
        """Starts a shadow from a version, or from everything that was observed."""
        request = ShadowCalibrationRequest(version=version)
        self._answers()
        return called(lambda: self._stub.ShadowCalibration(request, timeout=RETELL_TIMEOUT_SECONDS)).calibration

    def end_shadow(self) -> Calibration:
        """Ends the shadow; returns it as it was."""
        request = ShadowCalibrationRequest(stop=True)
        return called(lambda: self._stub.ShadowCalibration(request, timeout=self._timeout_seconds)).calibration

    def quarantine(self, *, limit: int, group: str = "", reason: str = "") -> list[QuarantinedObservation]:
        """The newest observations that were kept out, at most `limit`: of a group, with a reason word, where one is named."""

        def page(size: int, token: str) -> tuple[Sequence[QuarantinedObservation], str]:
            request = ListQuarantineRequest(page_size=size, page_token=token, group=group, reason=reason)
            answer = called(lambda: self._stub.ListQuarantine(request, timeout=self._timeout_seconds))
            return answer.observations, answer.next_page_token

        return paged(page, limit=limit)

    def release(self, request: ReleaseObservationRequest) -> ReleaseObservationResponse:
        """Lets an observation that was kept out be learned."""
        self._answers()
        return called(lambda: self._stub.ReleaseObservation(request, timeout=RETELL_TIMEOUT_SECONDS))

    def report(self, request: ReportCalibrationRequest) -> ReportCalibrationResponse:
        """Whether the margin keeps what it promises."""
        self._answers()
        return called(lambda: self._stub.ReportCalibration(request, timeout=REPORT_TIMEOUT_SECONDS))

    def simulate(self, messages: Iterable[SimulateCalibrationRequest]) -> SimulateCalibrationResponse:
        """What each policy would have done with a history."""
        self._answers()
        return called(lambda: self._stub.SimulateCalibration(iter(messages), timeout=SIMULATION_TIMEOUT_SECONDS))

    def export_history(self, *, since_seconds: float = 0) -> Iterator[PastAttempt]:
        """The service's own history, oldest end first."""
        request = ExportHistoryRequest(page_size=LARGEST_PAGE, since_time=timestamp(since_seconds))
        while True:
            page = called(lambda: self._stub.ExportHistory(request, timeout=self._timeout_seconds))
            yield from page.attempts
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token

    def _answers(self) -> None:
        """Raises ServiceError when the service, or the database behind it, gives no list of one row within the usual time."""
        called(lambda: self._stub.ListCalibrations(ListCalibrationsRequest(page_size=1), timeout=self._timeout_seconds))
