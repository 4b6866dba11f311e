"""Ends that are told in another order than they came: the margin is as if nothing had come late."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.databases import Database, NewDatabase
from tests.integration.service.conftest import _start
from tests.integration.service.telling import ended

from peakgate.server import learning
from peakgate.server.margin import margin_from
from peakgate.v1 import calibration_service_pb2 as calibration_pb
from peakgate.v1 import prediction_service_pb2 as pb
from peakgate.v1.prediction_pb2 import PredictResponse
from peakgate.v1.training_job_pb2 import TrainingJob

AJob = Callable[..., TrainingJob]

RATIOS = (1.01, 0.97, 1.04, 1.0, 0.4, 0.99, 1.2, 1.02)
"""Of the predicted device peak, by the second at which a job ended; one is implausible and kept out."""


async def learned(database: Database, a_job: AJob, order: tuple[int, ...]) -> tuple[str, PredictResponse]:
    """(stored margin, next answer) after the jobs of these seconds were told in this order; predictions have the same names in all."""
    running: Any
    async with _start(database) as running:
        service = running
        names = iter(f"predictions/{number:032x}" for number in range(100))
        service.core.predictor._name_of = lambda: next(names)
        service.core.learner._clock = lambda: 10**12
        job = a_job(framework="huggingface", micro_batch_size=4)
        answers = [await service.predictions.Predict(pb.PredictRequest(job=job)) for _ in RATIOS]
        for second in order:
            await ended(service, answers[second - 1], second, RATIOS[second - 1])
        row = service.core.store.active_calibration()
        assert row is not None
        return row.body, await service.predictions.Predict(pb.PredictRequest(job=job))


@pytest.mark.parametrize(
    "order", [(8, 7, 6, 5, 4, 3, 2, 1), (1, 2, 3, 5, 4, 6, 8, 7), (4, 1, 8, 2, 7, 3, 6, 5)], ids=["backwards", "neighbours", "mixed"]
)
async def test_the_order_of_arrival_changes_no_bit(order: tuple[int, ...], new_database: NewDatabase, a_job: AJob) -> None:
    """Of the stored state, and so of no answer."""
    in_order, late = new_database("in_order"), new_database("late")
    want_body, want_answer = await learned(in_order, a_job, tuple(sorted(order)))
    body, answer = await learned(late, a_job, order)
    assert body == want_body
    assert (answer.peak, answer.calibration) == (want_answer.peak, want_answer.calibration)
    query = "SELECT job, learned, reason FROM observations ORDER BY job"
    assert late.rows(query) == in_order.rows(query)


async def test_a_late_row_does_not_bring_back_what_was_gone_back_from(service: Any, a_job: AJob) -> None:
    """After a rollback the margin is made of what led to the version that was gone back to; after a promotion of the other one too."""
    job = a_job(framework="huggingface", micro_batch_size=4)
    answers = [await service.predictions.Predict(pb.PredictRequest(job=job)) for _ in range(5)]
    for second, answer in zip((10, 20, 30), answers, strict=False):
        await ended(service, answer, second, 1.0)
    whole = service.core.judge.snapshot.version
    back = await service.calibration.RollbackCalibration(calibration_pb.RollbackCalibrationRequest())
    assert (back.from_version, back.set_aside) == (whole, 2)
    await ended(service, answers[3], 5, 1.0)
    row = service.core.store.active_calibration()
    assert row.observations == 2
    assert margin_from(row.body).newest[0] == 10.0
    await service.calibration.PromoteCalibration(calibration_pb.PromoteCalibrationRequest(version=whole))
    await ended(service, answers[4], 7, 1.0)
    row = service.core.store.active_calibration()
    assert row.observations == 4
    assert margin_from(row.body).newest[0] == 30.0


async def test_a_margin_that_cannot_be_read_is_made_again(start_service: Any, database: Database, a_job: AJob) -> None:
    """Such as one of an older version: what was observed is still there."""
    job = a_job(framework="huggingface", micro_batch_size=4)
    async with start_service() as first:
        for second in (1, 2, 3):
            await ended(first, await first.predictions.Predict(pb.PredictRequest(job=job)), second, 1.0 + second / 10)
        want = await first.predictions.Predict(pb.PredictRequest(job=job))
    database.run("""UPDATE calibrations SET body = '{"format": 1}'""")
    async with start_service() as second:
        found = await second.predictions.Predict(pb.PredictRequest(job=job))
    assert (found.peak, found.calibration) == (want.peak, want.calibration)


async def test_what_is_too_far_back_is_collected_for_the_next_sweep(service: Any, a_job: AJob, monkeypatch: pytest.MonkeyPatch) -> None:
    """A month of accounting that is imported is replayed once, and not once a row: one new version takes in all of it."""
    monkeypatch.setattr(learning, "NEAR", 1)
    job = a_job(framework="huggingface", micro_batch_size=4)
    answers = [await service.predictions.Predict(pb.PredictRequest(job=job)) for _ in range(5)]
    for second, answer in zip((30, 40), answers[:2], strict=True):
        await ended(service, answer, second, 1.0)
    before = service.core.store.active_calibration()
    for second, answer in zip((3, 1, 2), answers[2:], strict=True):
        await ended(service, answer, second, 1.0)
    assert service.core.store.active_calibration() == before
    learned_at_once = await service.core.learner.learn()
    after = service.core.store.active_calibration()
    assert [each.attempt.job for each in learned_at_once] == ["1", "2", "3"]
    assert (after.sequence, after.parent, after.observations) == (before.sequence + 1, before.sequence, 5)
    assert await service.core.learner.learn() == ()
