"""An observation that was kept out is released, and learned where it belongs."""

from __future__ import annotations

import json
from typing import Any

import grpc
import pytest
from tests.databases import Database
from tests.integration.service.shadows import AJob, active, asked, calibrator_of, lived, replayed
from tests.integration.service.telling import an_end, ended
from tests.integration.service.test_service_epoch import a_model

from peakgate.v1 import calibration_service_pb2 as pb


async def kept_out(service: Any, a_job: AJob, second: int, ratio: float = 1.6) -> str:
    """A job that needed far more than was predicted; returns its prediction."""
    (answer,) = await asked(service, a_job, 1)
    await ended(service, answer, second, ratio)
    return answer.prediction


async def release(service: Any, prediction: str, **more: Any) -> pb.ReleaseObservationResponse:
    """Releases it."""
    request = pb.ReleaseObservationRequest(**{"prediction": prediction, "who": "anna", "why": "the image was new", **more})
    answer: pb.ReleaseObservationResponse = await service.calibration.ReleaseObservation(request)
    return answer


async def quarantine(service: Any, **request: Any) -> list[pb.QuarantinedObservation]:
    """What is kept out."""
    return list((await service.calibration.ListQuarantine(pb.ListQuarantineRequest(**request))).observations)


async def test_a_released_row_is_learned_where_it_belongs(service: Any, a_job: AJob, database: Database) -> None:
    """Its figures stay as they were; the version that learned it, and the row, say who and why; a rebuild is the same to the last bit."""
    await lived(service, a_job, (1, 2))
    name = await kept_out(service, a_job, 3)
    await lived(service, a_job, (4, 5))
    before = active(service)
    (listed,) = await quarantine(service)
    assert (listed.prediction, listed.reason, listed.group[:10]) == (name, "FAR_ABOVE_PREDICTION", "h100-80gb/")
    answer = await release(service, name)
    row = active(service)
    assert answer.calibration_version == row.version
    assert (answer.observation.learned, answer.observation.kind, answer.observation.reason) == (True, "exact", "FAR_ABOVE_PREDICTION")
    assert row.note.startswith(f"released {name} (job 3, FAR_ABOVE_PREDICTION) by anna: the image was new")
    assert row.observations == before.observations + 1
    assert await quarantine(service) == []
    assert row.body == replayed(service)
    told = database.rows("SELECT released, released_by, released_why FROM observations WHERE job = '3'")
    assert told == [(row.sequence, "anna", "the image was new")]
    await lived(service, a_job, (8, 7))
    assert active(service).body == replayed(service)


async def test_what_was_released_goes_and_comes_with_its_version(service: Any, a_job: AJob) -> None:
    """Before it the row is kept out as it was, also where it is told anew for one that comes late; after it it is learned."""
    await lived(service, a_job, (1,))
    name = await kept_out(service, a_job, 3)
    await lived(service, a_job, (4,))
    before = active(service)
    await release(service, name)
    after = active(service)
    await service.calibration.PromoteCalibration(pb.PromoteCalibrationRequest(version=before.version))
    assert active(service).body == replayed(service)
    await lived(service, a_job, (2,))
    assert active(service).body == replayed(service)
    assert active(service).observations == 3
    await service.calibration.PromoteCalibration(pb.PromoteCalibrationRequest(version=after.version))
    await lived(service, a_job, (2,))
    assert active(service).body == replayed(service)
    assert active(service).observations == 4


async def test_a_shadow_learns_what_is_released(service: Any, a_job: AJob) -> None:
    """At the next sweep, since it comes late."""
    await lived(service, a_job, (1, 2))
    name = await kept_out(service, a_job, 3)
    await service.calibration.ShadowCalibration(pb.ShadowCalibrationRequest())
    await release(service, name)
    await service.core.learner.learn()
    assert calibrator_of(service.core.store.shadow()) == calibrator_of(active(service))


async def test_only_what_is_kept_out_is_released(service: Any, a_job: AJob, refusal: Any) -> None:
    """Neither twice, nor what was learned, nor what nobody saw, nor without a reason."""
    (learned,) = await lived(service, a_job, (1,))
    name = await kept_out(service, a_job, 3)
    (unseen,) = await asked(service, a_job, 1)
    await service.telemetry.ReportJobEvent(an_end(unseen.prediction))
    await service.core.learner.learn()

    async def reason(prediction: str, **more: object) -> str:
        with pytest.raises(grpc.RpcError) as caught:
            await release(service, prediction, **more)
        return str(refusal(caught.value).reason)

    assert await reason(name, why=" ") == "FIELD_INVALID"
    assert await reason(name, job="4") == "OBSERVATION_NOT_FOUND"
    assert await reason("predictions/0") == "PREDICTION_NOT_FOUND"
    assert await reason(learned.prediction) == "OBSERVATION_NOT_KEPT_OUT"
    await release(service, name, job="3", restart=0)
    version = active(service).version
    assert await reason(name) == "OBSERVATION_NOT_KEPT_OUT"
    assert active(service).version == version


async def test_several_attempts_of_a_prediction_are_told_apart(service: Any, a_job: AJob, refusal: Any) -> None:
    """The job has to be named then."""
    (answer,) = await asked(service, a_job, 1)
    for second in (2, 3):
        await ended(service, answer, second, 1.6)
    with pytest.raises(grpc.RpcError) as caught:
        await release(service, answer.prediction)
    assert "3/0, 2/0" in refusal(caught.value).fields["job"]
    await release(service, answer.prediction, job="3")
    assert [each.observation.job for each in await quarantine(service)] == ["2"]


async def test_what_says_nothing_of_a_need_stays_kept_out(service: Any, a_job: AJob, database: Database, refusal: Any) -> None:
    """A row that no figure was told of, and one whose figure is no size: a person's word does not make it one."""
    name = await kept_out(service, a_job, 3)
    (body,) = database.rows("SELECT body FROM observations")[0]
    for text in ("", json.dumps(json.loads(str(body)) | {"lower_bytes": -1})):
        database.run(f"UPDATE observations SET body = '{text}'")
        with pytest.raises(grpc.RpcError) as caught:
            await release(service, name)
        assert refusal(caught.value).reason == "OBSERVATION_UNUSABLE"


async def test_the_quarantine_is_listed_by_group_and_by_reason(service: Any, a_job: AJob) -> None:
    """A page token belongs to what was asked."""
    for second, ratio in ((1, 1.6), (2, 0.3), (3, 1.62)):
        await kept_out(service, a_job, second, ratio)
    assert [each.reason for each in await quarantine(service, reason="FAR_BELOW_PREDICTION")] == ["FAR_BELOW_PREDICTION"]
    (group,) = {each.group for each in await quarantine(service)}
    assert len(await quarantine(service, group=group, reason="FAR_ABOVE_PREDICTION")) == 2
    assert await quarantine(service, group="other") == []
    first = await service.calibration.ListQuarantine(pb.ListQuarantineRequest(page_size=1, reason="FAR_ABOVE_PREDICTION"))
    assert first.next_page_token
    with pytest.raises(grpc.RpcError):
        await quarantine(service, page_token=first.next_page_token)


async def test_a_row_of_another_memory_model_needs_its_history(start_service: Any, a_job: AJob, refusal: Any) -> None:
    """A calibration that began anew knows nothing of it; one that was told everything again takes it as it is told now."""
    async with start_service() as first:
        await lived(first, a_job, (1, 2))
        name = await kept_out(first, a_job, 3)
    async with start_service(memory=a_model("2")) as second:
        await lived(second, a_job, (4,))
        with pytest.raises(grpc.RpcError) as caught:
            await release(second, name)
        assert refusal(caught.value).reason == "OBSERVATION_UNUSABLE"
        shadow = second.core.store.shadow()
        await second.calibration.PromoteCalibration(pb.PromoteCalibrationRequest(version=shadow.version))
        await release(second, name)
        assert active(second).observations == 4
        assert active(second).body == replayed(second)
