"""Simulations over real gRPC: of a history that is sent, and of the service's own past, on both kinds of database."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any

import grpc
import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from tests.histories import a_history
from tests.integration.service.telling import TOTAL_BYTES, a_batch, a_peak, an_end

from peakgate.client.history.read import read_lines
from peakgate.server.simulation import calls
from peakgate.v1 import calibration_simulation_pb2 as pb
from peakgate.v1 import prediction_service_pb2 as prediction_pb
from peakgate.v1.training_job_pb2 import TrainingJob

AJob = Callable[..., TrainingJob]


def attempts(count: int) -> list[pb.PastAttempt]:
    """Of a history that is made up."""
    lines = [json.dumps(each).encode() for each in a_history(count)]
    return [each for each in read_lines(lines) if isinstance(each, pb.PastAttempt)]


async def messages(settings: pb.SimulationSettings, history: Iterable[pb.PastAttempt]) -> AsyncIterator[pb.SimulateCalibrationRequest]:
    """The settings first, then ten at a time."""
    yield pb.SimulateCalibrationRequest(settings=settings)
    waiting = list(history)
    for start in range(0, len(waiting), 10):
        yield pb.SimulateCalibrationRequest(attempts=waiting[start : start + 10])


async def simulated(service: Any, history: Iterable[pb.PastAttempt] = (), **settings: object) -> pb.SimulateCalibrationResponse:
    """The answer."""
    chosen = pb.SimulationSettings(**settings)  # type: ignore[arg-type]  # protobuf checks the types
    answer: pb.SimulateCalibrationResponse = await service.calibration.SimulateCalibration(messages(chosen, history))
    return answer


async def run_jobs(service: Any, a_job: AJob, ratios: Iterable[float]) -> None:
    """Jobs that are predicted, show so much of what was predicted, and end; 0 runs out of memory."""
    for number, ratio in enumerate(ratios):
        job = a_job(framework="huggingface", micro_batch_size=4)
        answer = await service.predictions.Predict(prediction_pb.PredictRequest(job=job))
        peak_bytes = answer.peak.device_bytes * ratio or TOTAL_BYTES * 0.99
        await service.telemetry.ReportPeaks(a_batch(a_peak(answer.prediction, peak_bytes, job=str(number), uid=1000 + number % 5)))
        await service.telemetry.ReportJobEvent(an_end(answer.prediction, "finished" if ratio else "oom", job=str(number)))


async def exported(service: Any, *, page_size: int = 1000, **fields: object) -> list[pb.PastAttempt]:
    """All pages."""
    found: list[pb.PastAttempt] = []
    request = pb.ExportHistoryRequest(page_size=page_size, **fields)  # type: ignore[arg-type]  # protobuf checks the types
    while True:
        page = await service.calibration.ExportHistory(request)
        assert len(page.attempts) <= page_size
        found += page.attempts
        if not page.next_page_token:
            return found
        request.page_token = page.next_page_token


async def test_a_history_is_replayed_under_every_policy(service: Any) -> None:
    """A learned margin rejects fewer that fit than 15 % of the card, leaves less unused, and lets few run out of memory."""
    answer = await simulated(service, attempts(2000))
    found = {each.policy: each for each in answer.policies}
    learned, fixed = found["alpha:0.05/0.01"], found["fixed:15"]
    assert learned.false_rejections < 0.75 * fixed.false_rejections
    assert learned.unused_bytes < 0.5 * fixed.unused_bytes
    assert learned.admitted_ooms <= 0.01 * learned.admitted
    assert found["site"].cost == learned.cost
    assert sum(each.cheapest for each in answer.policies) >= 1
    assert answer.refused_attempts == 0


async def test_a_simulation_changes_nothing(service: Any, a_job: AJob) -> None:
    """The service's calibration is its own."""
    request = prediction_pb.PredictRequest(job=a_job(framework="huggingface"))
    before = await service.predictions.Predict(request)
    await simulated(service, attempts(60))
    after = await service.predictions.Predict(request)
    assert (after.peak, after.calibration) == (before.peak, before.calibration)


async def test_predictions_are_answered_meanwhile(service: Any, a_job: AJob) -> None:
    """The replay has a thread of its own."""
    running = asyncio.create_task(simulated(service, attempts(1500)))
    await asyncio.sleep(0.05)
    await service.predictions.Predict(prediction_pb.PredictRequest(job=a_job()), timeout=5)
    assert not running.done()
    assert (await running).attempts > 0


async def test_attempts_that_cannot_be_used_are_named_and_counted(service: Any) -> None:
    """By their lines; the others are replayed."""
    history = attempts(20)
    for number, attempt in enumerate(history, 1):
        attempt.line = number
    history[2].observed_bytes = -1
    history[5].job.model.preset = "no such model"
    answer = await simulated(service, [*history, history[0]], policies=["site"])
    assert [(each.line, each.reason) for each in answer.refused] == [(3, "VALUE_INVALID"), (6, "MODEL_UNKNOWN"), (1, "REPEATED")]
    assert (answer.attempts, answer.refused_attempts) == (len(history) - 2, 3)


@pytest.mark.parametrize(
    ("settings", "want_reason", "want_words"),
    [
        ({"policies": ["best"]}, "FIELD_INVALID", "names no policy"),
        ({"override_share": 2.0}, "FIELD_INVALID", "override_share"),
        ({"oom_cost": -1.0}, "FIELD_INVALID", "oom_cost"),
        ({"since_time": Timestamp(seconds=2**62)}, "FIELD_INVALID", "since_time"),
        ({"own_history": True}, "HISTORY_UNUSABLE", "empty"),
        ({}, "HISTORY_UNUSABLE", "none of the 1 attempts"),
    ],
)
async def test_what_cannot_be_simulated_is_refused(
    service: Any, refusal: Any, settings: dict[str, object], want_reason: str, want_words: str
) -> None:
    """Bad settings, an empty past, and a history of which nothing can be used."""
    history = () if "own_history" in settings else (pb.PastAttempt(line=1),)
    with pytest.raises(grpc.RpcError) as caught:
        await simulated(service, history, **settings)
    assert refusal(caught.value).code is grpc.StatusCode.INVALID_ARGUMENT
    assert refusal(caught.value).reason == want_reason
    assert want_words in (caught.value.details() or "")


async def test_the_own_past_is_exported_and_replayed(service: Any, a_job: AJob) -> None:
    """Each attempt once, oldest end first, over pages; what is exported gives what the service says of itself."""
    await run_jobs(service, a_job, (1.0, 1.05, 0.0, 0.97, 0.1, 1.02))
    found = await exported(service)
    assert [each.outcome for each in found] == ["finished", "finished", "oom", "finished", "finished", "finished"]
    assert {each.user for each in found} == {f"c/{1000 + number}" for number in range(5)}
    assert all(each.submit_time.ToMicroseconds() <= each.finish_time.ToMicroseconds() for each in found)
    assert await exported(service, page_size=2) == found
    own, sent = await simulated(service, own_history=True), await simulated(service, found)
    assert own == sent
    assert (own.attempts, own.ooms) == (6, 1)
    assert {each.reason: each.attempts for each in own.kept_out} == {"FAR_ABOVE_PREDICTION": 1, "FAR_BELOW_PREDICTION": 1}


async def test_the_past_can_be_cut(service: Any, a_job: AJob) -> None:
    """From a time on, in the export and in the simulation."""
    await run_jobs(service, a_job, (1.0, 1.05, 0.97))
    whole = await exported(service)
    since = whole[1].finish_time
    assert await exported(service, since_time=since) == whole[1:]
    assert (await simulated(service, own_history=True, since_time=since)).attempts == 2


async def test_a_page_token_of_another_list_is_refused(service: Any, refusal: Any) -> None:
    """Like everywhere."""
    with pytest.raises(grpc.RpcError) as caught:
        await service.calibration.ExportHistory(pb.ExportHistoryRequest(page_token="x"))
    assert refusal(caught.value).reason == "PAGE_TOKEN_INVALID"


async def test_a_history_has_a_limit(service: Any, refusal: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Refused whole, with the remedy: half an answer would be about another site."""
    monkeypatch.setattr(calls, "MOST_ATTEMPTS", 10)
    with pytest.raises(grpc.RpcError) as caught:
        await simulated(service, attempts(40))
    assert refusal(caught.value).reason == "HISTORY_TOO_LARGE"
    assert "more than 10" in (caught.value.details() or "")


async def test_who_goes_away_holds_up_nobody(service: Any) -> None:
    """The replay ends with its caller, and the next one is answered."""
    many = attempts(5000)
    running = asyncio.create_task(simulated(service, many))
    await asyncio.sleep(0.5)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    answer = await asyncio.wait_for(simulated(service, many[:20], policies=["fixed:15"]), timeout=10)
    assert answer.attempts == 20
