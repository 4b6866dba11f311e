"""CalibrationService: versions of the margin, going forth and back between them, and what was kept out."""

# ruff: noqa: ARG002, N802 - gRPC names the methods and their arguments
from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence

import grpc

from peakgate.calibration.node import NodeView
from peakgate.server.calibration_report import report, window_of
from peakgate.server.clock import Clock, to_timestamp
from peakgate.server.errors import field_error
from peakgate.server.judge import Judge
from peakgate.server.learning import Learner
from peakgate.server.lease import LeaseKeeper
from peakgate.server.margin import margin_from
from peakgate.server.observed import observation_message
from peakgate.server.pages import make_token, page_size, read_token
from peakgate.server.release import Releaser
from peakgate.server.shadow import check_is_whole, trial_of
from peakgate.server.shadow_starter import ShadowStarter
from peakgate.server.simulation.calls import Simulations
from peakgate.server.store.base import Store
from peakgate.server.store.records import CalibrationRow, KeptOut
from peakgate.server.switching import Switcher, Wish, found
from peakgate.server.versions import switch_note
from peakgate.v1 import calibration_report_pb2 as report_pb
from peakgate.v1 import calibration_service_pb2 as pb
from peakgate.v1 import calibration_simulation_pb2 as simulation_pb
from peakgate.v1.calibration_service_pb2_grpc import CalibrationServiceServicer

Context = grpc.aio.ServicerContext[object, object]


class CalibrationService(CalibrationServiceServicer):
    """Reads and switches versions."""

    def __init__(self, judge: Judge, store: Store, learner: Learner, keeper: LeaseKeeper, shadows: ShadowStarter, *, clock: Clock) -> None:
        self._judge = judge
        self._store = store
        self._switcher = Switcher(store, learner, keeper, clock=clock)
        self._shadows = shadows
        self._clock = clock
        self._releaser = Releaser(learner, store, judge.memory)
        self._reporting = asyncio.Lock()  # one at a time: each reads every attempt of its time
        self._simulations = Simulations(judge, store, clock=clock)

    async def GetCalibration(self, request: pb.GetCalibrationRequest, context: Context) -> pb.GetCalibrationResponse:
        """One version; without a name the active one."""
        if not request.version:
            return pb.GetCalibrationResponse(calibration=await self._active())
        row = await asyncio.to_thread(self._store.calibration, request.version)
        if row is None and request.version == self._judge.snapshot.version:
            return pb.GetCalibrationResponse(calibration=await self._active())
        return pb.GetCalibrationResponse(calibration=await asyncio.to_thread(self._in_full, found(row, request.version)))

    async def ListCalibrations(self, request: pb.ListCalibrationsRequest, context: Context) -> pb.ListCalibrationsResponse:
        """Versions, newest first."""
        size = page_size(request.page_size)
        position = read_token("calibrations", request.page_token, places=(int,))
        before = int(position[0]) if position is not None else None
        rows = await asyncio.to_thread(self._store.calibrations, limit=size + 1, before_sequence=before, chosen_only=request.chosen_only)
        token = make_token("calibrations", rows[size - 1].sequence) if len(rows) > size else ""
        return pb.ListCalibrationsResponse(calibrations=[_message(row) for row in rows[:size]], next_page_token=token)

    async def PromoteCalibration(self, request: pb.PromoteCalibrationRequest, context: Context) -> pb.PromoteCalibrationResponse:
        """Makes a stored version the active one."""
        wish = Wish(by=request.by, reason=request.reason)
        row = found(await asyncio.to_thread(self._store.calibration, request.version), request.version)
        if row.state == "shadow":
            before = await self._shadows.promote(row.version, why=switch_note(at_us=self._clock(), by=wish.by, reason=wish.reason))
            return pb.PromoteCalibrationResponse(calibration=await self._active(), from_version=before)
        check_is_whole(row)
        switched = await self._switcher.promote(request.version, wish)
        return pb.PromoteCalibrationResponse(calibration=await self._active(), from_version=switched.before, set_aside=switched.set_aside)

    async def RollbackCalibration(self, request: pb.RollbackCalibrationRequest, context: Context) -> pb.RollbackCalibrationResponse:
        """Goes back to the newest version before the active one that is kept for a reason, else to the one before it."""
        switched = await self._switcher.roll_back(Wish(by=request.by, reason=request.reason))
        return pb.RollbackCalibrationResponse(calibration=await self._active(), from_version=switched.before, set_aside=switched.set_aside)

    async def ListQuarantine(self, request: pb.ListQuarantineRequest, context: Context) -> pb.ListQuarantineResponse:
        """Observations that were kept out, newest first."""
        size = page_size(request.page_size)
        kind = f"quarantine group={request.group} reason={request.reason}"
        position = read_token(kind, request.page_token, places=(int,))
        offset = int(position[0]) if position is not None else 0
        wanted = {"group": request.group, "reason": request.reason}
        rows = await asyncio.to_thread(self._store.kept_out, limit=size + 1, offset=offset, **wanted)
        token = make_token(kind, offset + size) if len(rows) > size else ""
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

    async def ShadowCalibration(self, request: pb.ShadowCalibrationRequest, context: Context) -> pb.ShadowCalibrationResponse:
        """Starts a shadow, or ends it."""
        if request.stop and request.version:
            raise field_error("version", "is stated beside stop: the only shadow ends")
        row = await (self._shadows.stop() if request.stop else self._shadows.start(request.version))
        return pb.ShadowCalibrationResponse(calibration=_message(row))

    async def ReleaseObservation(self, request: pb.ReleaseObservationRequest, context: Context) -> pb.ReleaseObservationResponse:
        """Lets an observation that was kept out be learned."""
        restart = request.restart if request.HasField("restart") else None
        row = await self._releaser.release(request.prediction, job=request.job, restart=restart, who=request.who, why=request.why)
        stored = await asyncio.to_thread(self._store.prediction, row.prediction)
        found = next((each for each in stored.observations if (each.job, each.restart) == (row.job, row.restart)), row) if stored else row
        return pb.ReleaseObservationResponse(observation=observation_message(found), calibration_version=self._judge.snapshot.version)

    async def _active(self) -> pb.Calibration:
        row = await asyncio.to_thread(self._store.active_calibration)
        if row is not None:
            return await asyncio.to_thread(self._in_full, row)
        return pb.Calibration(version=self._judge.snapshot.version, state="active")  # nothing was observed

    def _in_full(self, row: CalibrationRow) -> pb.Calibration:
        """With what only its body tells, as far as that can be read."""
        message = _message(row)
        try:
            snapshot = margin_from(row.body).calibrator.snapshot()
        except ValueError:
            return message
        message.distrust.extend(snapshot.trust.reasons(1 - self._judge.policy.coverage))
        message.levels.extend(_level(name, node, snapshot.names(node)) for name, node in sorted(snapshot.nodes.items()))
        return message


def _message(row: CalibrationRow) -> pb.Calibration:
    return pb.Calibration(
        version=row.version,
        state=row.state,
        create_time=to_timestamp(row.created_us),
        observations=row.observations,
        groups=_groups(row.groups),
        kind=row.kind,
        note=row.note,
        trial=_trial(row),
    )


def _trial(row: CalibrationRow) -> pb.CalibrationTrial | None:
    found = trial_of(row)
    if found is None:
        return None
    trial, behind = found
    rules = [
        pb.TrialRule(name=rule.name, figure=rule.figure, limit=rule.limit, holds=rule.holds, group=rule.group) for rule in trial.rules()
    ]
    return pb.CalibrationTrial(rules=rules, rows=trial.rows, misses=trial.misses, active_misses=trial.active_misses, behind=behind)


def _level(name: str, node: NodeView, versions: Sequence[str]) -> pb.CalibrationLevel:
    return pb.CalibrationLevel(level=name, observations=node.exact_rows, alarms=node.alarms, alarmed=node.alarmed, versions=versions)


def _groups(text: str) -> list[pb.CalibrationGroup]:
    return [pb.CalibrationGroup(**group) for group in json.loads(text)]


def _kept_out(found: KeptOut) -> pb.QuarantinedObservation:
    row = found.row
    return pb.QuarantinedObservation(
        prediction=row.prediction,
        reason=row.reason,
        message=row.message,
        observed_bytes=row.observed_bytes,
        predicted_bytes=row.predicted_bytes,
        quarantine_time=to_timestamp(row.applied_us),
        observation=observation_message(row),
        group=found.group,
    )
