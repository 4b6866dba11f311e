"""A rejected job that runs all the same: its budget, its record, and what is learned of it; on both databases."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from typing import Any

import grpc
import pytest
from tests.databases import Database
from tests.integration.service.conftest import StartService
from tests.integration.service.telling import a_batch, a_peak, an_end

from peakgate.server.clock import DAY_US
from peakgate.server.errors import PeakgateError
from peakgate.v1 import prediction_service_pb2 as pb
from peakgate.v1.prediction_pb2 import VERDICT_ADMIT, VERDICT_REJECT, PredictResponse
from peakgate.v1.training_job_pb2 import TrainingJob

AJob = Callable[..., TrainingJob]
USER = "c/1000"


def a_request(job: TrainingJob, **changes: object) -> pb.PredictRequest:
    """A wish of the user."""
    values: dict[str, object] = {"job": job, "user": USER, "try_reason": "the paper says it fits"}
    return pb.PredictRequest(**(values | changes))  # type: ignore[arg-type]  # protobuf checks the types


def a_close_one(a_job: AJob) -> TrainingJob:
    """A job that states everything, fits its card by what is predicted, and does not by its bound."""
    job = a_job(framework="huggingface", micro_batch_size=12)
    job.attention.mask, job.checkpointing.mode, job.precision.recipe = "ones", "none", "amp-bf16"
    job.loss.implementation, job.loss.keep_logits = "full", True
    job.optimizer.name, job.optimizer.implementation, job.optimizer.set_to_none = "adamw", "foreach", True
    job.framework.expandable_segments, job.framework.bitsandbytes = False, "0.45"
    return job


async def asked(service: Any, job: TrainingJob, **changes: object) -> PredictResponse:
    """The answer to a wish."""
    answer: PredictResponse = await service.predictions.Predict(a_request(job, **changes))
    return answer


async def test_a_rejected_job_is_tried_and_what_came_of_it_is_learned(service: Any, a_job: AJob) -> None:
    """Rejected, granted, run below the card: the bound of the next one falls, and the list says that it fitted."""
    job = a_close_one(a_job)
    answer = await asked(service, job)
    assert answer.verdict == VERDICT_REJECT
    assert answer.peak.required_bytes < answer.capacity.usable_bytes < answer.peak.bound_bytes
    assert answer.try_anyway.granted
    assert (answer.try_anyway.left, answer.try_anyway.limit) == (2, 3)
    assert answer.reason.endswith("; c/1000 may run it all the same (try 1 of 3 in 24 hours)")
    listed = await service.predictions.ListPredictions(pb.ListPredictionsRequest(tries_only=True))
    assert [(each.prediction, each.user, each.tried.outcome) for each in listed.predictions] == [(answer.prediction, USER, "unknown")]
    await service.telemetry.ReportPeaks(a_batch(a_peak(answer.prediction, answer.peak.device_bytes * 0.9, uid=1000, ended=True)))
    after = await service.predictions.Predict(pb.PredictRequest(job=job))
    assert after.peak.bound_bytes < answer.peak.bound_bytes
    listed = await service.predictions.ListPredictions(pb.ListPredictionsRequest(tries_only=True))
    (line,) = listed.predictions
    assert (line.tried.reason, line.tried.outcome, line.state) == ("the paper says it fits", "fitted", "running")
    assert (line.peak.bound_bytes, line.verdict) == (answer.peak.bound_bytes, VERDICT_REJECT)


async def test_a_try_that_runs_out_of_memory_is_said_to(service: Any, a_job: AJob) -> None:
    """The service was right, and that is learned as well."""
    answer = await asked(service, a_close_one(a_job))
    await service.telemetry.ReportPeaks(a_batch(a_peak(answer.prediction, answer.capacity.total_bytes * 0.99)))
    await service.telemetry.ReportJobEvent(an_end(answer.prediction, "oom"))
    (line,) = (await service.predictions.ListPredictions(pb.ListPredictionsRequest(tries_only=True))).predictions
    assert line.tried.outcome == "oom"


async def test_a_budget_is_a_users_own_and_says_when_it_is_free(service: Any, a_job: AJob) -> None:
    """The fourth within a day is refused with the moment of the next; another user has their own; a day later the first is free."""
    clock = service.core.predictor._tries._clock
    now_us = clock()
    job = a_job(attention="eager")
    for moment in range(3):
        service.core.predictor._clock = lambda moment=moment: now_us + moment
        assert (await asked(service, job)).try_anyway.left == 2 - moment
    refused = await asked(service, job)
    assert not refused.try_anyway.granted
    assert (refused.try_anyway.left, refused.try_anyway.next_time.ToMicroseconds()) == (0, now_us + DAY_US)
    assert "c/1000 has used all tries of 24 hours (3); the next one is free at 20" in refused.reason
    assert refused.prediction  # the rejection is stored like any
    assert (await asked(service, job, user="c/1001")).try_anyway.granted
    service.core.predictor._clock = service.core.predictor._tries._clock = lambda: now_us + DAY_US
    assert (await asked(service, job)).try_anyway.granted
    assert not (await asked(service, job)).try_anyway.granted
    assert 'peakgate_tries_total{outcome="spent"} 2' in service.metrics.exposition().decode()
    assert 'peakgate_tries_total{outcome="granted"} 5' in service.metrics.exposition().decode()


async def test_an_admitted_and_an_undecided_job_spend_nothing(service: Any, a_job: AJob, database: Database) -> None:
    """There is nothing to try."""
    admitted = await asked(service, a_job())
    assert admitted.verdict == VERDICT_ADMIT
    undecided = await asked(service, a_job(framework="huggingface"))
    assert not admitted.HasField("try_anyway")
    assert not undecided.HasField("try_anyway")
    assert database.rows("SELECT * FROM tries") == []


@pytest.mark.parametrize(
    ("changes", "want"),
    [
        ({"user": ""}, "nobody said who submits it"),
        ({"try_reason": " "}, "no reason is stated"),
        ({"validate_only": True}, "nothing is stored"),
        ({"replay": True}, "nothing is stored"),
    ],
)
async def test_what_is_not_granted_says_why(changes: dict[str, object], want: str, service: Any, a_job: AJob, database: Database) -> None:
    """And spends nothing; the verdict is as without."""
    answer = await asked(service, a_job(attention="eager"), **changes)
    assert answer.verdict == VERDICT_REJECT
    assert not answer.try_anyway.granted
    assert want in answer.try_anyway.message
    assert want in answer.reason
    assert database.rows("SELECT * FROM tries") == []


async def test_nothing_is_granted_that_cannot_be_recorded(service: Any, a_job: AJob, monkeypatch: pytest.MonkeyPatch) -> None:
    """The database is away: the answer is a rejection, and waits to be stored as one."""

    def away(*_: object, **__: object) -> None:
        raise PeakgateError("STORE_UNAVAILABLE", "away")

    monkeypatch.setattr(service.core.store, "spend_try", away)
    answer = await asked(service, a_job(attention="eager"))
    assert not answer.try_anyway.granted
    assert "the database is away" in answer.try_anyway.message
    service.core.audit.healthy = False
    monkeypatch.setattr(service.core.store, "spend_try", lambda *_, **__: pytest.fail("a database that is known to be away is not asked"))
    assert not (await asked(service, a_job(attention="eager"))).try_anyway.granted


async def test_a_repeated_request_spends_one(service: Any, a_job: AJob, database: Database) -> None:
    """It gets the same answer; the same id with another reason is another request."""
    request_id = str(uuid.UUID(int=1))
    first = await asked(service, a_job(attention="eager"), request_id=request_id)
    again = await asked(service, a_job(attention="eager"), request_id=request_id)
    assert again == first
    assert len(database.rows("SELECT * FROM tries")) == 1
    for changes in ({"try_reason": "another"}, {"user": "c/1"}):
        with pytest.raises(grpc.RpcError, match="answered before, for another request"):
            await asked(service, a_job(attention="eager"), request_id=request_id, **changes)
    found = await service.predictions.GetPrediction(pb.GetPredictionRequest(prediction=first.prediction))
    assert (found.prediction.try_anyway, found.prediction.reason) == (first.try_anyway, first.reason)
    assert (found.stored.user, found.stored.tried.reason) == (USER, "the paper says it fits")


async def test_replicas_that_race_never_pass_the_budget(start_service: StartService, a_job: AJob, database: Database) -> None:
    """Twenty at once over two of them: three are granted, and each has its prediction."""
    async with start_service() as one, start_service() as other:
        calls = [asked(replica, a_job(attention="eager")) for _ in range(10) for replica in (one, other)]
        answers = await asyncio.gather(*calls)
    granted = [answer for answer in answers if answer.try_anyway.granted]
    assert sorted(answer.try_anyway.left for answer in granted) == [0, 1, 2]
    names = {row[0] for row in database.rows("SELECT prediction FROM tries")}
    assert names == {answer.prediction for answer in granted}
    stored = {row[0] for row in database.rows("SELECT prediction FROM predictions")}
    assert names <= stored


async def test_one_request_at_two_replicas_at_once_spends_one(start_service: StartService, a_job: AJob, database: Database) -> None:
    """Both answer with the same prediction."""
    request_id = str(uuid.UUID(int=2))
    async with start_service() as one, start_service() as other:
        calls = [asked(replica, a_job(attention="eager"), request_id=request_id) for _ in range(3) for replica in (one, other)]
        answers = await asyncio.gather(*calls)
    assert {answer.try_anyway.granted for answer in answers} == {True}
    assert len({answer.prediction for answer in answers}) == 1
    assert len(database.rows("SELECT * FROM tries")) == 1


async def test_a_tried_prediction_does_not_expire(service: Any, a_job: AJob) -> None:
    """It is the record of who was let run what, and why."""
    tried = await asked(service, a_job(attention="eager"))
    other = await service.predictions.Predict(pb.PredictRequest(job=a_job()))
    await service.core.audit.flush()
    assert service.core.store.expire(1 << 62) == 1
    listed = await service.predictions.ListPredictions(pb.ListPredictionsRequest())
    assert [each.prediction for each in listed.predictions] == [tried.prediction]
    assert other.prediction


@pytest.mark.parametrize(
    ("changes", "want"),
    [
        ({"user": "x" * 257}, {"user": "has 257 characters; at most 256 are kept"}),
        ({"user": "root\x00"}, {"user": "holds U+0000, which cannot be printed; state one line of text"}),
        ({"user": "alice\u202eevil"}, {"user": "holds U+202E, which cannot be printed; state one line of text"}),
        ({"user": " alice"}, {"user": "begins or ends with a space; leave it out"}),
        ({"try_reason": "a\nb"}, {"try_reason": "holds U+000A, which cannot be printed; state one line of text"}),
        ({"try_reason": "x" * 501, "user": "\t"}, {"user": "holds U+0009", "try_reason": "has 501 characters"}),
    ],
)
async def test_an_absurd_asker_is_refused(
    changes: dict[str, object], want: dict[str, str], service: Any, a_job: AJob, refusal: Any
) -> None:
    """With every bad field; nothing is stored."""
    with pytest.raises(grpc.RpcError) as caught:
        await asked(service, a_job(attention="eager"), **changes)
    found = refusal(caught.value)
    assert (found.reason, set(found.fields)) == ("FIELD_INVALID", set(want))
    assert all(found.fields[name].startswith(text) for name, text in want.items())
    assert list((await service.predictions.ListPredictions(pb.ListPredictionsRequest())).predictions) == []
