"""Several services on one PostgreSQL: one learns, all answer with what it learned within 2 s, and another one takes over."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, AsyncExitStack
from typing import Any

import grpc
import pytest
from tests.databases import Database
from tests.integration.service.conftest import Process
from tests.integration.service.telling import a_batch, a_peak
from tests.integration.service.test_service_margin import predicted
from tests.integration.service.waiting import until

from peakgate.server.lease import LEASE_SECONDS, RENEW_SECONDS
from peakgate.v1 import calibration_service_pb2 as calibration_pb
from peakgate.v1 import prediction_service_pb2 as pb
from peakgate.v1.prediction_service_pb2_grpc import PredictionServiceStub
from peakgate.v1.telemetry_service_pb2_grpc import TelemetryServiceStub
from peakgate.v1.training_job_pb2 import TrainingJob

AJob = Callable[..., TrainingJob]
RunService = Callable[[], AbstractContextManager[Process]]
pytestmark = pytest.mark.parametrize("new_database", ["postgresql"], indirect=True)


async def told(service: Any, prediction: Any, ratio: float = 1.1) -> None:
    """The job of a prediction ended with this peak."""
    await service.telemetry.ReportPeaks(a_batch(a_peak(prediction.prediction, prediction.peak.device_bytes * ratio, ended=True)))


async def seconds_until_it_answers(service: Any, a_job: AJob, version: str) -> float:
    """How long a service goes on answering under another version."""

    async def has_it() -> bool:
        return (await predicted(service, a_job)).calibration.version == version

    started = time.monotonic()
    await until(has_it, seconds=5)
    return time.monotonic() - started


async def test_what_one_learns_the_others_answer_with_within_2_seconds(start_service: Any, a_job: AJob) -> None:
    """The bound of the one that was not told moves too; a rollback reaches it as fast."""
    async with start_service() as writer, start_service() as other:
        before = await predicted(other, a_job)
        assert (writer.core.keeper.lease is not None, other.core.keeper.lease) == (True, None)
        versions = []
        for ratio in (1.2, 1.3):
            await told(writer, await predicted(writer, a_job), ratio)
            learned = await predicted(writer, a_job)
            assert await seconds_until_it_answers(other, a_job, learned.calibration.version) < 2
            versions.append(learned.calibration.version)
        assert (await predicted(other, a_job)).peak == learned.peak
        assert learned.peak.bound_bytes > before.peak.bound_bytes
        await writer.calibration.RollbackCalibration(calibration_pb.RollbackCalibrationRequest())
        assert await seconds_until_it_answers(other, a_job, versions[0]) < 2


async def test_what_is_told_to_another_one_the_writer_learns_at_its_next_look(start_service: Any, a_job: AJob, database: Database) -> None:
    """Once, and by the writer alone."""
    async with start_service() as writer, start_service() as other:
        before = await predicted(other, a_job)
        await told(other, before)
        assert (await predicted(other, a_job)).calibration == before.calibration
        assert await other.core.learner.learn() == ()

        async def is_learned() -> bool:
            return (await predicted(writer, a_job)).calibration.observations == 1

        await until(is_learned, seconds=2)
        assert database.count("observations") == 1


async def test_an_operator_may_ask_any_of_them(start_service: Any, a_job: AJob) -> None:
    """It is the writer from then on, at once, and what the former one was learning is not lost."""
    async with start_service() as writer, start_service() as other:
        for ratio in (1.0, 1.3):
            await told(writer, await predicted(writer, a_job), ratio)
        back = await other.calibration.RollbackCalibration(calibration_pb.RollbackCalibrationRequest(by="ada"))
        assert (await predicted(other, a_job)).calibration.version == back.calibration.version
        await told(writer, await predicted(writer, a_job))
        assert await writer.core.learner.learn() == ()

        async def is_learned() -> bool:
            return (await predicted(other, a_job)).calibration.observations == 2

        await until(is_learned, seconds=2)
        await writer.core.keeper.keep()
        assert writer.core.keeper.lease is None


async def test_one_that_stops_lets_the_next_one_in_at_once(start_service: Any, a_job: AJob) -> None:
    """Within a renewal, and not after the lease has run out."""
    async with start_service() as first, AsyncExitStack() as later:
        second = await later.enter_async_context(start_service())
        before = await predicted(second, a_job)
        await first.core.keeper.give_up()
        await second.core.keeper.keep()
        await told(second, before)
        assert (await predicted(second, a_job)).calibration.observations == 1
    assert second.core.keeper.lease is None


async def test_a_killed_writer_is_replaced(run_service: RunService, database: Database, a_job: AJob) -> None:
    """Another server learns what it left, and what comes, when its lease has run out (here: is made to)."""
    with run_service() as killed, run_service() as heir:
        async with grpc.aio.insecure_channel(killed.grpc) as channel:
            await told_over(channel, a_job)
            killed.process.kill()
        async with grpc.aio.insecure_channel(heir.grpc) as channel:
            await told_over(channel, a_job)
            database.run(f"UPDATE leases SET expires_us = expires_us - {LEASE_SECONDS * 1e6 + 1:.0f}")
            await until(lambda: all_learned(database, 2), seconds=RENEW_SECONDS + 3)
    assert database.rows("SELECT fence FROM leases") == [(2,)]


async def test_a_suspended_writer_that_comes_back_writes_nothing(run_service: RunService, database: Database, a_job: AJob) -> None:
    """What it is told then is learned by the one that replaced it: every version from then on is that one's."""
    with run_service() as suspended, run_service() as heir:
        async with grpc.aio.insecure_channel(suspended.grpc) as channel, grpc.aio.insecure_channel(heir.grpc) as other:
            await told_over(channel, a_job)
            os.kill(suspended.process.pid, signal.SIGSTOP)
            database.run(f"UPDATE leases SET expires_us = expires_us - {LEASE_SECONDS * 1e6 + 1:.0f}")
            await told_over(other, a_job)
            await until(lambda: all_learned(database, 2), seconds=RENEW_SECONDS + 3)
            os.kill(suspended.process.pid, signal.SIGCONT)
            await asyncio.gather(*(told_over(channel, a_job) for _ in range(4)))
            await until(lambda: all_learned(database, 6), seconds=5)
    assert database.rows("SELECT fence FROM leases") == [(2,)]
    lines = database.rows("SELECT sequence, parent FROM calibrations ORDER BY sequence")
    assert [parent for _, parent in lines[1:]] == [sequence for sequence, _ in lines[:-1]]


async def told_over(channel: grpc.aio.Channel, a_job: AJob) -> None:
    """A job is predicted, runs and ends."""
    job = a_job(framework="huggingface", micro_batch_size=4)
    answer = await PredictionServiceStub(channel).Predict(pb.PredictRequest(job=job))
    peak = a_peak(answer.prediction, float(answer.peak.device_bytes), ended=True)
    await TelemetryServiceStub(channel).ReportPeaks(a_batch(peak))


async def all_learned(database: Database, rows: int) -> bool:
    """Whether so many observations are part of the margin."""
    found = await asyncio.to_thread(database.rows, "SELECT count(*) FROM observations WHERE learned = 1 AND sequence > 0")
    return found == [(rows,)]
