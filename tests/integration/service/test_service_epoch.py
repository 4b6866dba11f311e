"""Another memory model over a database that an earlier one has learned: it begins with nothing, and a shadow is told what was observed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.integration.service.shadows import AJob, active, asked, lived, replayed
from tests.integration.service.telling import ended

from peakgate.calibration import calibrator
from peakgate.calibration.trial import ROWS_AGAINST_NOTHING
from peakgate.memory.job import Job
from peakgate.memory.prediction import FieldError, JobError, Prediction
from peakgate.server import margin, retell, subjects
from peakgate.server.memory import MemoryModel, memory_model
from peakgate.server.retell import Teller
from peakgate.server.shadow import trial_of
from peakgate.v1 import calibration_service_pb2 as pb
from peakgate.v1 import prediction_service_pb2 as prediction_pb

GB = 1_000_000_000


def a_model(version: str, *, more_bytes: int = GB, refuses: Callable[[Job], bool] = lambda _: False) -> MemoryModel:
    """The real one, which counts so much more, and does not know some jobs."""
    real = memory_model()

    def predict(job: Job) -> Prediction:
        if refuses(job):
            raise JobError("FIELD_INVALID", (FieldError(field="model", description="is not known any more"),))
        found = real.predict(job)
        return replace(found, required_bytes=found.required_bytes + more_bytes, allocated_bytes=found.allocated_bytes + more_bytes)

    return replace(real, predict=predict, version=version)


async def retold(service: Any, *, promoted: bool = False) -> None:
    """Waits until the history was told again, which begins with the service, and made a shadow, or the active version of it."""
    for _ in range(400):
        row = active(service)
        is_shown = row.kind == "promoted" and service.core.judge.snapshot.version == row.version
        if is_shown if promoted else service.core.learner.shadows.current is not None:
            return
        await asyncio.sleep(0.02)
    raise AssertionError("nothing was told again")


async def test_enough_history_makes_a_shadow_the_active_version_at_once(start_service: Any, a_job: AJob) -> None:
    """It is scored as it is told, against a calibration that knows nothing; what comes late afterwards is learned where it belongs."""
    rows = ROWS_AGAINST_NOTHING
    async with start_service() as first:
        await lived(first, a_job, range(1, rows + 1))
        want_observations = active(first).observations
        want_bound = (await asked(first, a_job, 1))[0].peak.bound_bytes
    async with start_service(memory=a_model("2")) as second:
        await retold(second, promoted=True)
        row = active(second)
        assert (row.kind, row.observations) == ("promoted", want_observations)
        assert json.loads(row.body)["calibrator"]["epoch"] == "2"
        answer = (await asked(second, a_job, 1))[0]
        assert answer.calibration.version == row.version
        assert answer.peak.bound_bytes == pytest.approx(want_bound, rel=0.02)
        assert row.body == replayed(second)
        await lived(second, a_job, (rows + 20, rows + 10))
        assert active(second).body == replayed(second)
        assert active(second).observations == want_observations + 2
        for _ in range(2):  # to the promoted one, and to what was active before it
            await second.calibration.RollbackCalibration(pb.RollbackCalibrationRequest())
    async with start_service() as back:
        assert active(back).observations == want_observations
        assert (await asked(back, a_job, 1))[0].peak.bound_bytes == want_bound


async def test_a_little_history_is_on_trial(start_service: Any, a_job: AJob) -> None:
    """The active one begins with nothing and learns; the shadow has both, and outlives a restart."""
    async with start_service() as first:
        await lived(first, a_job, (1, 2, 3))
        last_of_first = await asked(first, a_job, 1)
    async with start_service(memory=a_model("2")) as second:
        await retold(second)
        assert (await asked(second, a_job, 1))[0].calibration.observations == 0
        await lived(second, a_job, (5, 6))
        await ended(second, last_of_first[0], 7, 1.0)
        shadow = second.core.store.shadow()
        assert (active(second).observations, shadow.observations) == (2, 5)
        found = trial_of(shadow)
        assert found is not None
        assert (found[0].exact_rows, found[0].rows_needed) == (5, ROWS_AGAINST_NOTHING)
        assert active(second).body == replayed(second)
    async with start_service(memory=a_model("2")) as third:
        await lived(third, a_job, (8, 4))
        await third.core.learner.learn()
        assert (active(third).observations, third.core.store.shadow().observations) == (4, 7)
        promoted = await third.calibration.PromoteCalibration(pb.PromoteCalibrationRequest(version=shadow.version))
        assert promoted.calibration.observations == 7
        assert active(third).body == replayed(third)
        await lived(third, a_job, (10, 9))
        assert active(third).body == replayed(third)


async def test_a_job_that_cannot_be_predicted_is_left_out(start_service: Any, a_job: AJob) -> None:
    """And counted; the others are told."""
    async with start_service() as first:
        await lived(first, a_job, (1, 2))
        other = await first.predictions.Predict(prediction_pb.PredictRequest(job=a_job(framework="huggingface", micro_batch_size=2)))
        await ended(first, other, 3, 1.0)
    model = a_model("2", refuses=lambda job: job.batch.micro_batch_size == 2)
    async with start_service(memory=model) as second:
        await retold(second)
        store = second.core.store
        assert store.shadow().observations == 2
        teller = Teller(model, everything=True)
        assert len(list(teller.observations(store.told(active(second).sequence, after=0)))) == 2
        assert (teller.retold, teller.left_out) == (2, 1)


async def test_other_keys_are_told_again_too(start_service: Any, a_job: AJob, monkeypatch: pytest.MonkeyPatch) -> None:
    """A change of how groups are called counts the format of the keys up: what was observed is found under the new names."""
    async with start_service() as first:
        await lived(first, a_job, (1, 2, 3))
    for module in (calibrator, margin, retell, subjects):
        monkeypatch.setattr(module, "KEYS_FORMAT", 99)
    key = subjects.group_key
    monkeypatch.setattr(subjects, "group_key", lambda *arguments: f"new/{key(*arguments)}")
    async with start_service() as second:
        await retold(second)
        (group,) = json.loads(second.core.store.shadow().groups)
        assert group["group"].startswith("new/")
        await lived(second, a_job, (4, 5))
        assert active(second).observations == 2
        assert active(second).body == replayed(second)


async def test_a_stop_ends_the_telling(start_service: Any, a_job: AJob, monkeypatch: pytest.MonkeyPatch) -> None:
    """It begins anew at the next start; nobody waits for it."""
    async with start_service() as first:
        await lived(first, a_job, (1, 2))
    from peakgate.server.shadow_starter import Pace

    step = Pace.step
    monkeypatch.setattr(Pace, "step", lambda pace: (pace.stopping.wait(30), step(pace)))
    async with start_service(memory=a_model("2")) as second:
        await asyncio.sleep(0.2)
        assert second.core.store.shadow_place() == 0
    monkeypatch.setattr(Pace, "step", step)
    async with start_service(memory=a_model("2")) as third:
        await retold(third)
        assert third.core.store.shadow().observations == 2
