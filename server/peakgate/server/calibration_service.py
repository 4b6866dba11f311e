"""CalibrationService: versions of the margin, going forth and back between them, and what was kept out."""

# ruff: noqa: ARG002, N802 - gRPC names the methods and their arguments
from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import grpc

from peakgate.server.calibration_report import report, window_of
from peakgate.server.clock import Clock, now_us, to_timestamp
from peakgate.server.errors import PeakgateError
from peakgate.server.judge import Judge
from peakgate.server.learning import Learner
from peakgate.server.observed import observation_message
from peakgate.server.pages import make_token, page_size, read_token
from peakgate.server.simulation.calls import Simulations
from peakgate.server.store.base import Store
from peakgate.server.store.records import CalibrationRow, ObservationRow
from peakgate.v1 import calibration_report_pb2 as report_pb
from peakgate.v1 import calibration_service_pb2 as pb
from peakgate.v1 import calibration_simulation_pb2 as simulation_pb
from peakgate.v1.calibration_service_pb2_grpc import CalibrationServiceServicer

Context = grpc.aio.ServicerContext[object, object]


class CalibrationService(CalibrationServiceServicer):
    """Reads and switches versions."""

    def __init__(self, judge: Judge, store: Store, learner: Learner, *, clock: Clock = now_us) -> None:
        self._judge = judge
        self._store = store
        self._learner = learner
        self._clock = clock
        self._reporting = asyncio.Lock()  # one at a time: each reads every attempt of its time
        self._simulations = Simulations(judge, store, clock=clock)

    async def GetCalibration(self, request: pb.GetCalibrationRequest, context: Context) -> pb.GetCalibrationResponse:
        """One version; without a name the active one."""
        if not request.version:
            return pb.GetCalibrationResponse(calibration=await self._active())
        row = await asyncio.to_thread(self._store.calibration, request.version)
        if row is None and request.version == self._judge.snapshot.version:
            return pb.GetCalibrationResponse(calibration=await self._active())
        return pb.GetCalibrationResponse(calibration=_message(_found(row, request.version)))

    async def ListCalibrations(self, request: pb.ListCalibrationsRequest, context: Context) -> pb.ListCalibrationsResponse:
        """Versions, newest first."""
        size = page_size(request.page_size)
        position = read_token("calibrations", request.page_token, places=(int,))
        before = int(position[0]) if position is not None else None
        rows = await asyncio.to_thread(self._store.calibrations, limit=size + 1, before_sequence=before)
        token = make_token("calibrations", rows[size - 1].sequence) if len(rows) > size else ""
        return pb.ListCalibrationsResponse(calibrations=[_message(row) for row in rows[:size]], next_page_token=token)

    async def PromoteCalibration(self, request: pb.PromoteCalibrationRequest, context: Context) -> pb.PromoteCalibrationResponse:
        """Makes a stored version the active one."""
        row = _found(await asyncio.to_thread(self._store.calibration, request.version), request.version)
        return pb.PromoteCalibrationResponse(calibration=await self._activate(row))

    async def RollbackCalibration(self, request: pb.RollbackCalibrationRequest, context: Context) -> pb.RollbackCalibrationResponse:
        """Goes back to the version that was made before the active one."""
        active = await asyncio.to_thread(self._store.active_calibration)
        row = await asyncio.to_thread(self._store.calibration_before, active.sequence) if active is not None else None
        if row is None:
            raise PeakgateError("CALIBRATION_ONLY", "there is no version before the active one")
        return pb.RollbackCalibrationResponse(calibration=await self._activate(row))

    async def ListQuarantine(self, request: pb.ListQuarantineRequest, context: Context) -> pb.ListQuarantineResponse:
        """Observations that were kept out, newest first."""
        size = page_size(request.page_size)
        position = read_token("quarantine", request.page_token, places=(int,))
        offset = int(position[0]) if position is not None else 0
        rows = await asyncio.to_thread(self._store.kept_out, limit=size + 1, offset=offset)
        token = make_token("quarantine", offset + size) if len(rows) > size else ""
        return pb.ListQuarantineResponse(observations=[_kept_out(row) for row in rows[:size]], next_page_token=token)

    async def ReportCalibration(self, request: report_pb.ReportCalibrationRequest, context: Context) -> report_pb.ReportCalibrationResponse:
        """Whether the margin keeps what it promises."""
        window, snapshot, coverage = window_of(request, now_us=self._clock()), self._judge.snapshot, self._judge.policy.coverage
        async with self._reporting:
            return await asyncio.to_thread(report, self._store, snapshot, window, coverage=coverage, with_users=request.users)

    async def SimulateCalibration(
        self, request_iterator: AsyncIterator[simulation_pb.SimulateCalibrationRequest], context: Context
    ) -> simulation_pb.SimulateCalibrationResponse:
        """What each policy would have done with a history."""
        return await self._simulations.simulate(request_iterator)

    async def ExportHistory(self, request: simulation_pb.ExportHistoryRequest, context: Context) -> simulation_pb.ExportHistoryResponse:
        """The service's own history, oldest end first."""
        return await self._simulations.export(request)

    async def _active(self) -> pb.Calibration:
        row = await asyncio.to_thread(self._store.active_calibration)
        if row is not None:
            return _message(row)
        return pb.Calibration(version=self._judge.snapshot.version, state="active")  # nothing was observed

    async def _activate(self, row: CalibrationRow) -> pb.Calibration:
        await asyncio.to_thread(self._store.promote, row.sequence)
        await self._learner.load()
        return await self._active()


def _found(row: CalibrationRow | None, version: str) -> CalibrationRow:
    if row is None:
        text = f"version: {version[:64]!r} is not known"
        raise PeakgateError("CALIBRATION_NOT_FOUND", text, hint="list the known ones with ListCalibrations")
    return row


def _message(row: CalibrationRow) -> pb.Calibration:
    return pb.Calibration(
        version=row.version,
        state=row.state,
        create_time=to_timestamp(row.created_us),
        observations=row.observations,
        groups=_groups(row.groups),
    )


def _groups(text: str) -> list[pb.CalibrationGroup]:
    return [pb.CalibrationGroup(**group) for group in json.loads(text)]


def _kept_out(row: ObservationRow) -> pb.QuarantinedObservation:
    return pb.QuarantinedObservation(
        prediction=row.prediction,
        reason=row.reason,
        message=row.message,
        observed_bytes=row.observed_bytes,
        predicted_bytes=row.predicted_bytes,
        quarantine_time=to_timestamp(row.applied_us),
        observation=observation_message(row),
    )
