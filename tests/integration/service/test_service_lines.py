"""Whatever is done to versions, one after the other: each active one, and each shadow, is what its rows make of it, to the last bit."""

from __future__ import annotations

import random
from functools import partial
from typing import Any

import grpc
import pytest
from tests.integration.service.shadows import AJob, active, asked, calibrator_of, replayed
from tests.integration.service.telling import ended

from peakgate.calibration import Calibrator, in_order
from peakgate.server import shadow_starter
from peakgate.server.margin import History, Margin
from peakgate.server.retell import Teller
from peakgate.server.shadow import shadow_from
from peakgate.server.store import history, thinning
from peakgate.v1 import calibration_service_pb2 as pb

REFUSED = {"SHADOW_EXISTS", "CALIBRATION_NOT_FOUND", "CALIBRATION_ONLY", "OBSERVATION_NOT_KEPT_OUT", "FIELD_INVALID", "CALIBRATION_EMPTY"}
"""What may be said to a wish that cannot be had at that moment."""

STEPS = 30


class Operator:
    """Does something, at random."""

    def __init__(self, service: Any, a_job: AJob, draw: random.Random) -> None:
        self._service, self._a_job, self._draw = service, a_job, draw
        self._second = 1000
        self.done: list[str] = []

    async def act(self) -> None:
        """One thing of those that people and jobs do."""
        choices = {self.job: 8, self.late_job: 3, self.strange_job: 2, self.release: 3, self.roll_back: 2, self.promote: 2}
        choices |= {self.shadow: 3, self.shadow_from: 2, self.promote_shadow: 2, self.stop_shadow: 1, self.thin: 2}
        (choice,) = self._draw.choices(list(choices), list(choices.values()))
        self.done.append(choice.__name__)
        await choice()

    async def job(self) -> None:
        self._second += 10
        await self._ended(self._second, self._draw.uniform(0.95, 1.1))

    async def late_job(self) -> None:
        await self._ended(self._second - self._draw.randrange(1, 60), self._draw.uniform(0.95, 1.1))

    async def strange_job(self) -> None:
        self._second += 10
        await self._ended(self._second, 1.6)

    async def release(self) -> None:
        kept = (await self._service.calibration.ListQuarantine(pb.ListQuarantineRequest())).observations
        if kept:
            one = self._draw.choice(kept)
            await self._service.calibration.ReleaseObservation(pb.ReleaseObservationRequest(prediction=one.prediction, why="it is right"))

    async def roll_back(self) -> None:
        await self._service.calibration.RollbackCalibration(pb.RollbackCalibrationRequest())

    async def promote(self) -> None:
        await self._service.calibration.PromoteCalibration(pb.PromoteCalibrationRequest(version=await self._version()))

    async def shadow(self) -> None:
        await self._service.calibration.ShadowCalibration(pb.ShadowCalibrationRequest())

    async def shadow_from(self) -> None:
        await self._service.calibration.ShadowCalibration(pb.ShadowCalibrationRequest(version=await self._version()))

    async def promote_shadow(self) -> None:
        row = self._service.core.store.shadow()
        if row is not None:
            await self._service.calibration.PromoteCalibration(pb.PromoteCalibrationRequest(version=row.version))

    async def stop_shadow(self) -> None:
        await self._service.calibration.ShadowCalibration(pb.ShadowCalibrationRequest(stop=True))

    async def thin(self) -> None:
        self._service.core.store.thin_calibrations(kept_from_us=1 << 62, lease=self._service.core.keeper.lease)

    async def _version(self) -> str:
        return str(self._draw.choice(self._service.core.store.calibrations(limit=100, before_sequence=None)).version)

    async def _ended(self, second: int, ratio: float) -> None:
        (answer,) = await asked(self._service, self._a_job, 1)
        await ended(self._service, answer, second, ratio)


def shadow_replayed(service: Any) -> object:
    """The shadow's margin from its rows alone."""
    store, memory = service.core.store, service.core.judge.memory
    shadow = shadow_from(store.shadow(), active_sequence=active(service).sequence)
    again = Margin(Calibrator(epoch=memory.version), history=shadow.margin.history)
    teller = Teller(memory, everything=shadow.margin.history is History.RETOLD)
    for observation in in_order(teller.observations(store.told_of(shadow.ranges))):
        again.learn(observation)
    return again.calibrator.state()


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_every_version_is_what_its_rows_make_of_it(
    service: Any, a_job: AJob, seed: int, refusal: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Jobs in order and late, strange ones, releases, rollbacks, promotions, shadows and thinning in any order; refusals change nothing."""
    monkeypatch.setattr(history, "thinned", partial(thinning.thinned, newest_kept=2))
    monkeypatch.setattr(shadow_starter, "ROWS", 4)
    said: set[str] = set()
    operator = Operator(service, a_job, random.Random(seed))
    await operator.job()
    for _ in range(STEPS):
        try:
            await operator.act()
        except grpc.RpcError as error:
            said.add(refusal(error).reason)
        await service.core.learner.learn()
        assert active(service).body == replayed(service), operator.done
        row = service.core.store.shadow()
        if row is not None:
            assert calibrator_of(row) == shadow_replayed(service), operator.done
    assert said <= REFUSED
