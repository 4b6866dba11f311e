"""A shadow learns beside the active version, is scored, answers nobody, and becomes the active one when its trial says so."""

from __future__ import annotations

from typing import Any

import grpc
import pytest
from tests.integration.service.shadows import AJob, active, asked, calibrator_of, lived, replayed
from tests.integration.service.telling import ended

from peakgate.server import shadow_starter
from peakgate.v1 import calibration_service_pb2 as pb
from peakgate.v1 import prediction_service_pb2 as prediction_pb


@pytest.fixture
def short_trial(monkeypatch: pytest.MonkeyPatch) -> int:
    """A trial that needs three rows."""
    monkeypatch.setattr(shadow_starter, "ROWS", 3)
    return 3


async def shadow(service: Any, **request: Any) -> pb.Calibration:
    """Starts a shadow."""
    answer: pb.ShadowCalibrationResponse = await service.calibration.ShadowCalibration(pb.ShadowCalibrationRequest(**request))
    return answer.calibration


def rule(calibration: pb.Calibration, name: str) -> pb.TrialRule:
    """A rule of its trial."""
    return next(each for each in calibration.trial.rules if each.name == name)


async def test_a_shadow_of_everything_learns_what_the_active_one_learns(service: Any, a_job: AJob) -> None:
    """Where nothing was set aside both are equal to the last bit, before and after; only what came since was scored."""
    await lived(service, a_job, (1, 2, 3))
    started = await shadow(service)
    assert (started.state, started.kind, started.trial.rows, rule(started, "exact_rows").holds) == ("shadow", "shadow", 0, False)
    assert calibrator_of(service.core.store.shadow()) == calibrator_of(active(service))
    await lived(service, a_job, (4, 5))
    assert calibrator_of(service.core.store.shadow()) == calibrator_of(active(service))
    found = (await service.calibration.GetCalibration(pb.GetCalibrationRequest(version=started.version))).calibration
    assert (found.version, found.trial.rows, rule(found, "exact_rows").figure) == (started.version, 2, 2)
    assert rule(found, "mean_bound_ratio").figure == 1.0
    listed = (await service.calibration.ListCalibrations(pb.ListCalibrationsRequest())).calibrations
    assert [each.trial.rows for each in listed if each.state == "shadow"] == [2]


async def test_no_answer_shows_a_shadow(service: Any, a_job: AJob) -> None:
    """But a metric counts what it would have said beside what was said."""
    await lived(service, a_job, (1, 2))
    request = prediction_pb.PredictRequest(job=a_job(framework="huggingface", micro_batch_size=4))
    before = await service.predictions.Predict(request)
    counted = b'peakgate_shadow_answers_total{active="fits",shadow="fits"} '
    assert counted + b"0.0" in service.metrics.exposition()
    await shadow(service)
    after = await service.predictions.Predict(request)
    assert (after.peak, after.calibration, after.reason) == (before.peak, before.calibration, before.reason)
    assert counted + b"1.0" in service.metrics.exposition()


async def test_a_late_row_is_learned_by_both_and_scored_by_neither(service: Any, a_job: AJob) -> None:
    """The shadow is made again at the next sweep."""
    first, second, third, late, new = await asked(service, a_job, 5)
    for at, answer in ((10, first), (20, second)):
        await ended(service, answer, at, 1.0)
    await shadow(service)
    await ended(service, third, 30, 1.02)
    await ended(service, late, 15, 1.04)
    await ended(service, new, 40, 0.99)
    row = service.core.store.shadow()
    assert calibrator_of(row) != calibrator_of(active(service))
    await service.core.learner.learn()
    row = service.core.store.shadow()
    assert calibrator_of(row) == calibrator_of(active(service))
    found = (await service.calibration.GetCalibration(pb.GetCalibrationRequest(version=row.version))).calibration
    assert (found.trial.rows, found.trial.behind) == (2, False)


async def test_a_shadow_that_passes_its_trial_is_promoted(start_service: Any, a_job: AJob, short_trial: int) -> None:
    """By itself, with what it has shown in the note; the next row goes on from it, and what was active can be gone back to."""
    async with start_service() as service:
        await lived(service, a_job, (1, 2))
        started = await shadow(service)
        await lived(service, a_job, range(3, 3 + short_trial - 1))
        before = active(service)
        assert service.core.store.shadow_place()
        await lived(service, a_job, (9,))
        row = active(service)
        assert (row.kind, row.note.partition(" promoted ")[0], row.observations) == ("promoted", started.version, 5)
        assert "exact_rows 3 (at least 3)" in row.note
        assert service.core.store.shadow_place() == 0
        assert (await asked(service, a_job, 1))[0].calibration.version == row.version
        await lived(service, a_job, (10, 8))
        assert active(service).body == replayed(service)
        await service.calibration.RollbackCalibration(pb.RollbackCalibrationRequest())
        await lived(service, a_job, (7,))
        assert before.sequence < active(service).sequence
        assert active(service).body == replayed(service)


async def test_manual_promotion_waits_for_an_operator(start_service: Any, a_job: AJob, short_trial: int) -> None:
    """PEAKGATE_CALIBRATION_PROMOTION=manual: all rules hold, and nothing happens until somebody promotes it."""
    async with start_service(promotes=False) as service:
        await lived(service, a_job, (1, 2))
        started = await shadow(service)
        await lived(service, a_job, range(3, 4 + short_trial))
        found = (await service.calibration.GetCalibration(pb.GetCalibrationRequest(version=started.version))).calibration
        assert all(each.holds for each in found.trial.rules)
        assert found.state == "shadow"
        promoted = await service.calibration.PromoteCalibration(
            pb.PromoteCalibrationRequest(version=started.version, by="anna", reason="it is time")
        )
        note = promoted.calibration.note
        assert note.startswith(f"{started.version} promoted ")
        assert note.endswith(" by anna: it is time")
        assert promoted.calibration.state == "active"
        assert active(service).body == replayed(service)


async def test_what_a_rollback_set_aside_comes_back_with_a_shadow(service: Any, a_job: AJob, database: Any) -> None:
    """A shadow of everything has it; after its promotion it counts, and after going back it does not."""
    await lived(service, a_job, (1, 2, 3, 4))
    await service.calibration.RollbackCalibration(pb.RollbackCalibrationRequest())
    flags = "SELECT job, aside FROM observations ORDER BY job"
    want_flags = database.rows(flags)
    assert any(aside for _, aside in want_flags)
    left = active(service)
    started = await shadow(service)
    assert started.observations == 4
    await service.calibration.PromoteCalibration(pb.PromoteCalibrationRequest(version=started.version))
    assert [aside for _, aside in database.rows(flags)] == [0] * 4
    await lived(service, a_job, (6, 5))
    assert active(service).observations == 6
    assert active(service).body == replayed(service)
    await service.calibration.PromoteCalibration(pb.PromoteCalibrationRequest(version=left.version))
    assert database.rows(flags)[:4] == want_flags
    assert active(service).body == replayed(service)


async def test_a_shadow_from_a_version_leaves_out_what_came_between(service: Any, a_job: AJob, short_trial: int) -> None:
    """It learns what comes from then on; a row that comes late after its promotion is learned where it belongs."""
    await lived(service, a_job, (1, 2))
    base = active(service)
    await lived(service, a_job, (3, 4, 5))
    started = await shadow(service, version=base.version)
    assert started.observations == base.observations
    await lived(service, a_job, (6, 9))
    await service.calibration.PromoteCalibration(pb.PromoteCalibrationRequest(version=started.version))
    assert active(service).observations == 4
    assert active(service).body == replayed(service)
    await lived(service, a_job, (8, 7, 10))
    assert active(service).observations == 7
    assert active(service).body == replayed(service)


async def test_there_is_one_shadow_at_most_and_it_can_be_ended(service: Any, a_job: AJob, refusal: Any) -> None:
    """A second one is refused; one that has ended is no version to go to or to start from."""
    with pytest.raises(grpc.RpcError) as caught:
        await shadow(service)
    assert refusal(caught.value).reason == "CALIBRATION_EMPTY"
    await lived(service, a_job, (1, 2))
    started = await shadow(service)
    with pytest.raises(grpc.RpcError) as caught:
        await shadow(service)
    assert refusal(caught.value).reason == "SHADOW_EXISTS"
    stopped = await shadow(service, stop=True)
    assert (stopped.version, stopped.state) == (started.version, "retired")
    for call in (
        shadow(service, version=started.version),
        service.calibration.PromoteCalibration(pb.PromoteCalibrationRequest(version=started.version)),
    ):
        with pytest.raises(grpc.RpcError) as caught:
            await call
        assert "has ended" in refusal(caught.value).fields["version"]
    with pytest.raises(grpc.RpcError) as caught:
        await shadow(service, stop=True)
    assert refusal(caught.value).reason == "CALIBRATION_NOT_FOUND"
    assert (await shadow(service)).version != started.version


async def test_a_switch_by_hand_ends_the_shadow(service: Any, a_job: AJob) -> None:
    """It was compared with another version."""
    await lived(service, a_job, (1, 2))
    await shadow(service)
    await service.calibration.RollbackCalibration(pb.RollbackCalibrationRequest())
    assert service.core.store.shadow_place() == 0


async def test_a_shadow_outlives_a_restart(start_service: Any, a_job: AJob) -> None:
    """With its trial."""
    async with start_service() as first:
        await lived(first, a_job, (1, 2))
        started = await shadow(first)
        await lived(first, a_job, (3,))
    async with start_service() as second:
        await lived(second, a_job, (4,))
        found = (await second.calibration.GetCalibration(pb.GetCalibrationRequest(version=started.version))).calibration
        assert found.trial.rows == 2
        assert calibrator_of(second.core.store.shadow()) == calibrator_of(active(second))
