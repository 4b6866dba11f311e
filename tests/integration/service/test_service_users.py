"""The user at Predict: what was learned of somebody moves the bounds of their next jobs, and nobody else's; on both databases."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.databases import Database
from tests.integration.service.telling import a_batch, a_peak

from peakgate.v1 import prediction_service_pb2 as pb
from peakgate.v1.prediction_pb2 import PredictResponse
from peakgate.v1.training_job_pb2 import TrainingJob

AJob = Callable[..., TrainingJob]


async def predicted(service: Any, a_job: AJob, user: str) -> PredictResponse:
    """The user's answer to one and the same job."""
    request = pb.PredictRequest(job=a_job(framework="huggingface", micro_batch_size=4), user=user)
    answer: PredictResponse = await service.predictions.Predict(request)
    return answer


async def test_a_users_habit_moves_their_own_bound(service: Any, a_job: AJob) -> None:
    """One user's jobs need more than those of the others, as the owners of their processes show."""
    for number in range(40):
        uid, ratio = (1000, 1.02) if number % 4 == 0 else (1001 + number % 4, 0.99)
        answer = await predicted(service, a_job, "")
        peak = a_peak(answer.prediction, answer.peak.device_bytes * ratio, job=str(number), uid=uid, ended=True)
        await service.telemetry.ReportPeaks(a_batch(peak))
    heavy, light, stranger, nobody = [(await predicted(service, a_job, user)).peak for user in ("c/1000", "c/1002", "c/9999", "")]
    assert heavy.bound_bytes > nobody.bound_bytes > light.bound_bytes
    assert stranger == nobody
    assert heavy.oom_probability >= nobody.oom_probability
    assert {each.required_bytes for each in (heavy, light)} == {nobody.required_bytes}


async def test_who_asked_is_stored_and_listed(service: Any, a_job: AJob, database: Database) -> None:
    """Any name that the site uses; nobody is nobody."""
    for user in ("alice@example.org", ""):
        await predicted(service, a_job, user)
    await service.core.audit.flush()
    assert sorted(str(row[0]) for row in database.rows("SELECT user_name FROM predictions")) == ["", "alice@example.org"]
    listed = await service.predictions.ListPredictions(pb.ListPredictionsRequest())
    assert sorted(each.user for each in listed.predictions) == ["", "alice@example.org"]


async def test_a_forged_name_changes_nothing_that_is_learned(service: Any, a_job: AJob, database: Database) -> None:
    """What is learned is told of the owner of the processes, whoever was said to submit."""
    answer = await predicted(service, a_job, "c/4242")
    await service.telemetry.ReportPeaks(a_batch(a_peak(answer.prediction, answer.peak.device_bytes, uid=1000, ended=True)))
    ((body,),) = database.rows("SELECT body FROM observations")
    assert '"user":"c/1000"' in str(body)
    assert "4242" not in str(body)


async def test_a_thousand_strangers_are_one_answer(service: Any, a_job: AJob) -> None:
    """The cache of answers is no place that a caller can fill with names."""
    for number in range(50):
        await predicted(service, a_job, f"stranger {number}")
    assert len(service.core.judge._cache) == 1
