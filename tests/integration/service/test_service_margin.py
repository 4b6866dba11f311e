"""Observed peaks move the margin: over real gRPC, on a real SQLite file, across restarts and crashes."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any

import grpc
import pytest
from tests.databases import Database
from tests.integration.service.telling import GPU, TOTAL_BYTES, a_batch, a_peak, an_end
from tests.integration.service.waiting import until

from peakgate.calibration.trust import MISSES_TOO_OFTEN, Trust
from peakgate.server.errors import PeakgateError
from peakgate.server.subjects import observation_from, subject_from
from peakgate.v1 import calibration_service_pb2 as calibration_pb
from peakgate.v1 import prediction_service_pb2 as pb
from peakgate.v1 import telemetry_service_pb2 as telemetry_pb
from peakgate.v1.prediction_pb2 import PredictResponse
from peakgate.v1.prediction_service_pb2_grpc import PredictionServiceStub
from peakgate.v1.telemetry_service_pb2_grpc import TelemetryServiceStub
from peakgate.v1.training_job_pb2 import TrainingJob

AJob = Callable[..., TrainingJob]


async def predicted(service: Any, a_job: AJob) -> PredictResponse:
    """A prediction of the job whose margin the tests move."""
    answer: PredictResponse = await service.predictions.Predict(pb.PredictRequest(job=a_job(framework="huggingface", micro_batch_size=4)))
    return answer


async def test_a_higher_peak_raises_the_bound_of_the_next_job(service: Any, a_job: AJob) -> None:
    """And the list shows what was observed."""
    before = await predicted(service, a_job)
    peak = before.peak.device_bytes * 1.2
    acknowledged = await service.telemetry.ReportPeaks(a_batch(a_peak(before.prediction, peak, ended=True)))
    assert (acknowledged.stored, acknowledged.sequence) == (1, 1)
    after = await predicted(service, a_job)
    assert after.peak.bound_bytes > before.peak.bound_bytes
    assert after.peak.required_bytes == before.peak.required_bytes
    assert after.calibration.observations == before.calibration.observations + 1
    assert after.calibration.version != before.calibration.version
    listed = await service.predictions.ListPredictions(pb.ListPredictionsRequest(observed_only=True))
    assert [each.prediction for each in listed.predictions] == [before.prediction]
    assert listed.predictions[0].observed_device_bytes == int(peak)


async def test_peaks_as_predicted_lower_the_bound(service: Any, a_job: AJob) -> None:
    """What is seen to be right needs less margin."""
    before = await predicted(service, a_job)
    for number in range(12):
        answer = await predicted(service, a_job)
        job = str(number)
        await service.telemetry.ReportPeaks(a_batch(a_peak(answer.prediction, before.peak.device_bytes * 0.97, job=job, ended=True)))
    assert (await predicted(service, a_job)).peak.bound_bytes < before.peak.bound_bytes


async def test_the_end_of_the_job_may_come_as_an_event(service: Any, a_job: AJob) -> None:
    """Peaks first, their end later."""
    before = await predicted(service, a_job)
    await service.telemetry.ReportPeaks(a_batch(a_peak(before.prediction, before.peak.device_bytes * 1.2)))
    assert (await predicted(service, a_job)).calibration.version == before.calibration.version
    await service.telemetry.ReportJobEvent(an_end(before.prediction))
    assert (await predicted(service, a_job)).peak.bound_bytes > before.peak.bound_bytes


async def test_an_end_that_comes_before_its_peaks_waits_for_them(service: Any, a_job: AJob) -> None:
    """The last batch may be under way on another connection."""
    before = await predicted(service, a_job)
    await service.telemetry.ReportJobEvent(an_end(before.prediction))
    await service.telemetry.ReportPeaks(a_batch(a_peak(before.prediction, before.peak.device_bytes * 1.2, ended=True)))
    assert (await predicted(service, a_job)).peak.bound_bytes > before.peak.bound_bytes


async def test_out_of_memories_raise_the_bound(service: Any, a_job: AJob) -> None:
    """Each is a lower bound of the need, at the whole card. One may have had another cause; several say that the level has moved."""
    job = a_job(framework="huggingface")
    before = await service.predictions.Predict(pb.PredictRequest(job=job))
    assert before.peak.required_bytes < TOTAL_BYTES < before.peak.bound_bytes
    for number in range(6):
        answer = await service.predictions.Predict(pb.PredictRequest(job=job))
        await service.telemetry.ReportPeaks(a_batch(a_peak(answer.prediction, TOTAL_BYTES * 0.99, job=str(number))))
        await service.telemetry.ReportJobEvent(an_end(answer.prediction, "oom", job=str(number)))
    after = await service.predictions.Predict(pb.PredictRequest(job=job))
    assert after.peak.bound_bytes > before.peak.bound_bytes
    assert after.peak.oom_probability > before.peak.oom_probability
    listed = await service.predictions.ListPredictions(pb.ListPredictionsRequest(observed_only=True))
    assert [each.state for each in listed.predictions] == ["oom"] * 6


async def test_the_worst_gpu_counts(service: Any, a_job: AJob, database: Database) -> None:
    """Eight GPUs are one observation, that of the highest."""
    before = await predicted(service, a_job)
    peaks = [a_peak(before.prediction, before.peak.device_bytes + index, gpu_uuid=f"{GPU}{index}", ended=True) for index in range(8)]
    await service.telemetry.ReportPeaks(a_batch(*peaks))
    assert database.rows("SELECT observed_bytes, learned FROM observations") == [(before.peak.device_bytes + 7, 1)]


async def test_duplicates_late_rows_and_replays_change_nothing(service: Any, a_job: AJob) -> None:
    """Peaks are merged by maximum, and an attempt is applied once."""
    before = await predicted(service, a_job)
    high, low = (a_peak(before.prediction, before.peak.device_bytes * ratio, ended=True) for ratio in (1.2, 0.5))
    await service.telemetry.ReportPeaks(a_batch(high))
    want_answer = await predicted(service, a_job)
    for _ in range(3):
        await service.telemetry.ReportPeaks(a_batch(low, high, low))
        await service.telemetry.ReportJobEvent(an_end(before.prediction))
    answer = await predicted(service, a_job)
    assert answer.peak == want_answer.peak
    assert answer.calibration == want_answer.calibration
    found = await service.predictions.GetPrediction(pb.GetPredictionRequest(prediction=before.prediction))
    assert found.stored.observed_device_bytes == int(before.peak.device_bytes * 1.2)


async def test_good_rows_are_stored_and_each_refused_one_has_its_reason(service: Any, a_job: AJob) -> None:
    """Another node's, above the card, not a number, no UUID: the batch is not lost for them."""
    name = (await predicted(service, a_job)).prediction
    batch = a_batch(
        a_peak(name, 1e9, node="n2"),
        a_peak(name, 2e9),
        a_peak(name, TOTAL_BYTES * 1.03),
        a_peak(name, math.nan),
        a_peak(name, 1e9, gpu_uuid="none"),
        a_peak(name, 3e9, pid=17),
    )
    acknowledged = await service.telemetry.ReportPeaks(batch)
    assert acknowledged.stored == 2
    want_refused = [(0, "NODE_MISMATCH"), (2, "PEAK_ABOVE_CARD"), (3, "PEAK_INVALID"), (4, "UUID_INVALID")]
    assert [(row.index, row.reason) for row in acknowledged.refused] == want_refused
    assert all(row.message for row in acknowledged.refused)


async def test_a_batch_that_is_too_large_is_refused_whole(service: Any, refusal: Any) -> None:
    """256 rows are the limit, which the message names."""
    with pytest.raises(grpc.RpcError) as caught:
        await service.telemetry.ReportPeaks(a_batch(*(a_peak("", 1e9) for _ in range(257))))
    assert refusal(caught.value).code is grpc.StatusCode.INVALID_ARGUMENT
    assert refusal(caught.value).reason == "BATCH_TOO_LARGE"


async def test_a_batch_must_say_who_reports(service: Any, refusal: Any) -> None:
    """The node is what rows are checked against."""
    with pytest.raises(grpc.RpcError) as caught:
        await service.telemetry.ReportPeaks(telemetry_pb.ReportPeaksRequest(peaks=[a_peak("", 1e9)]))
    assert "node.node" in refusal(caught.value).fields


async def test_an_unknown_event_is_refused(service: Any, refusal: Any) -> None:
    """With the words that are allowed."""
    with pytest.raises(grpc.RpcError) as caught:
        await service.telemetry.ReportJobEvent(an_end("predictions/0", "exploded"))
    assert "finished" in refusal(caught.value).fields["event"]


async def test_peaks_of_an_unknown_prediction_are_kept_and_teach_nothing(service: Any, database: Database) -> None:
    """The id comes from a job's environment, which anybody can set."""
    acknowledged = await service.telemetry.ReportPeaks(a_batch(a_peak("predictions/forged", 1e9, ended=True)))
    assert acknowledged.stored == 1
    assert database.count("observations") == 0


async def test_a_stream_answers_each_batch_in_order(service: Any, a_job: AJob) -> None:
    """The same rows, the same acknowledgement."""
    name = (await predicted(service, a_job)).prediction

    async def batches() -> AsyncIterator[telemetry_pb.StreamPeaksRequest]:
        for sequence in (1, 2, 3):
            yield telemetry_pb.StreamPeaksRequest(batch=a_batch(a_peak(name, 1e9 * sequence), a_peak(name, -1.0), sequence=sequence))

    acks = [response.ack async for response in service.telemetry.StreamPeaks(batches())]
    assert [(ack.sequence, ack.stored, len(ack.refused)) for ack in acks] == [(1, 1, 1), (2, 1, 1), (3, 1, 1)]
    found = await service.predictions.GetPrediction(pb.GetPredictionRequest(prediction=name))
    assert found.stored.observed_device_bytes == 3_000_000_000
    assert found.stored.state == "running"


async def test_a_bad_batch_is_refused_row_by_row_and_its_stream_lives_on(service: Any) -> None:
    """Too many rows, or nobody who reports: each row has the reason, and the next batch is stored."""
    nameless = a_batch(a_peak("", 1e9), sequence=2)
    nameless.node.node = ""
    batches = [a_batch(*(a_peak("", 1e9) for _ in range(257))), nameless, a_batch(a_peak("", 1e9), sequence=3)]

    async def stream() -> AsyncIterator[telemetry_pb.StreamPeaksRequest]:
        for batch in batches:
            yield telemetry_pb.StreamPeaksRequest(batch=batch)

    acks = [response.ack async for response in service.telemetry.StreamPeaks(stream())]
    assert [(ack.sequence, ack.stored, len(ack.refused)) for ack in acks] == [(1, 0, 257), (2, 0, 1), (3, 1, 0)]
    assert [ack.refused[0].reason for ack in acks[:2]] == ["BATCH_TOO_LARGE", "FIELD_INVALID"]


async def test_two_services_on_one_database_share_the_margin(start_service: Any, a_job: AJob) -> None:
    """What either is told is learned once, and both come to the same calibration, within the 2 s of a look at what others changed."""
    async with start_service() as first, start_service() as second:
        for service in (first, second, first):
            before = await predicted(service, a_job)
            await service.telemetry.ReportPeaks(a_batch(a_peak(before.prediction, before.peak.device_bytes * 1.1, ended=True)))
        for service in (first, second):

            async def knows_all(service: Any = service) -> bool:
                return (await predicted(service, a_job)).calibration.observations == 3

            await until(knows_all, seconds=2)
        assert (await predicted(second, a_job)).calibration == (await predicted(first, a_job)).calibration


@pytest.mark.parametrize("new_database", ["pgbouncer"], indirect=True)
async def test_services_behind_a_pgbouncer_share_the_margin(start_service: Any, a_job: AJob) -> None:
    """In transaction mode: two services with more calls at once than connections lose none of them, and learn each job once."""
    async with start_service() as first, start_service() as second:
        before = await predicted(first, a_job)
        names = [(await predicted(service, a_job)).prediction for service in (first, second) * 4]
        peaks = [a_batch(a_peak(name, before.peak.device_bytes * 1.1, job=str(number), ended=True)) for number, name in enumerate(names)]
        answers = await asyncio.gather(*(service.telemetry.ReportPeaks(batch) for batch in peaks for service in (first, second)))
        assert [answer.stored for answer in answers] == [1] * 16
        await asyncio.gather(*(service.core.learner.learn() for service in (first, second)))
        await asyncio.gather(*(service.core.learner.load() for service in (first, second)))
        found = [(await predicted(service, a_job)).calibration for service in (first, second)]
        assert found[0] == found[1]
        assert found[0].observations == 8


async def test_a_restart_keeps_the_margin(start_service: Any, a_job: AJob) -> None:
    """Two lifetimes of the service on one database."""
    async with start_service() as first:
        before = await predicted(first, a_job)
        await first.telemetry.ReportPeaks(a_batch(a_peak(before.prediction, before.peak.device_bytes * 1.2, ended=True)))
        want_answer = await predicted(first, a_job)
    async with start_service() as second:
        answer = await predicted(second, a_job)
    assert answer.peak.bound_bytes == want_answer.peak.bound_bytes > before.peak.bound_bytes
    assert answer.calibration == want_answer.calibration


async def test_an_end_that_was_stored_and_not_learned_is_learned_at_the_next_start(
    start_service: Any, a_job: AJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a crash between the commit of the peaks and that of the margin."""

    async def fail(names: object) -> None:
        raise PeakgateError("STORE_UNAVAILABLE", "away")

    async with start_service() as first:
        before = await predicted(first, a_job)
        monkeypatch.setattr(first.core.learner, "learn", fail)
        await first.telemetry.ReportPeaks(a_batch(a_peak(before.prediction, before.peak.device_bytes * 1.2, ended=True)))
        assert (await predicted(first, a_job)).peak.bound_bytes == before.peak.bound_bytes
    async with start_service() as second:
        assert (await predicted(second, a_job)).peak.bound_bytes > before.peak.bound_bytes


async def test_a_version_can_be_gone_back_to_and_promoted_again(service: Any, a_job: AJob) -> None:
    """The bound follows at once."""
    bounds, versions = [], []
    for ratio in (1.1, 1.3):
        answer = await predicted(service, a_job)
        await service.telemetry.ReportPeaks(a_batch(a_peak(answer.prediction, answer.peak.device_bytes * ratio, ended=True)))
        learned = await predicted(service, a_job)
        bounds.append(learned.peak.bound_bytes)
        versions.append(learned.calibration.version)
    back = await service.calibration.RollbackCalibration(calibration_pb.RollbackCalibrationRequest())
    assert back.calibration.version == versions[0]
    assert (await predicted(service, a_job)).peak.bound_bytes == bounds[0]
    await service.calibration.PromoteCalibration(calibration_pb.PromoteCalibrationRequest(version=versions[1]))
    assert (await predicted(service, a_job)).peak.bound_bytes == bounds[1]
    listed = await service.calibration.ListCalibrations(calibration_pb.ListCalibrationsRequest())
    assert [(each.version, each.state) for each in listed.calibrations] == [(versions[1], "active"), (versions[0], "retired")]
    assert listed.calibrations[0].groups[0].observations == 2


async def test_an_implausible_peak_is_quarantined_with_its_reason(service: Any, a_job: AJob) -> None:
    """A tenth of the prediction is another job: never deleted in silence, never learned."""
    before = await predicted(service, a_job)
    await service.telemetry.ReportPeaks(a_batch(a_peak(before.prediction, before.peak.device_bytes * 0.1, ended=True)))
    assert (await predicted(service, a_job)).peak.bound_bytes == before.peak.bound_bytes
    kept_out = (await service.calibration.ListQuarantine(calibration_pb.ListQuarantineRequest())).observations
    assert [row.prediction for row in kept_out] == [before.prediction]
    assert kept_out[0].reason.isupper()
    assert kept_out[0].message


async def test_a_calibration_that_is_not_trusted_is_told_and_counted(service: Any, a_job: AJob) -> None:
    """A wide bound at 99 %, a warning with the reason's word, and the metric that a dashboard shows; cached answers count too."""
    before = await predicted(service, a_job)
    misses = replace(service.core.judge.snapshot, trust=Trust(chances=(0.0,) * 200))
    service.core.judge.swap(misses)
    for _ in range(2):
        answer = await predicted(service, a_job)
        assert any(MISSES_TOO_OFTEN in warning for warning in answer.warnings)
        assert answer.peak.coverage == 0.99
        assert answer.peak.bound_bytes - answer.peak.required_bytes >= 0.15 * answer.capacity.total_bytes
    assert answer.peak.bound_bytes > before.peak.bound_bytes
    text = service.metrics.exposition().decode()
    assert f'peakgate_answers_distrusted_total{{reason="{MISSES_TOO_OFTEN}"}} 2.0' in text


async def test_what_is_stored_is_what_the_calibration_is_told(service: Any, a_job: AJob, database: Database) -> None:
    """The subject with the prediction; the same with whose it was and what was seen, with the observation."""
    before = await predicted(service, a_job)
    await service.telemetry.ReportPeaks(a_batch(a_peak(before.prediction, before.peak.device_bytes, ended=True, uid=1000)))
    ((subject,),) = database.rows("SELECT subject FROM predictions")
    ((body, sequence),) = database.rows("SELECT body, sequence FROM observations")
    stored, told = subject_from(str(subject)), observation_from(str(body))
    assert (stored.group, stored.required_bytes) == (before.calibration.group, before.peak.required_bytes)
    assert told.subject == replace(stored, user="c/1000")
    assert (told.upper_bytes, told.has_statistics, len(told.config)) == (before.peak.device_bytes, False, 64)
    assert sequence == service.core.store.active_calibration().sequence


def test_a_killed_service_loses_nothing_that_it_acknowledged(run_service: Any, a_job: AJob) -> None:
    """kill -9 right after each acknowledgement; the batch without one is sent again, and changes nothing twice."""
    with run_service() as running, grpc.insecure_channel(running.grpc) as channel:
        answer = PredictionServiceStub(channel).Predict(pb.PredictRequest(job=a_job(framework="huggingface", micro_batch_size=4)))
        name, device_bytes = answer.prediction, answer.peak.device_bytes
        TelemetryServiceStub(channel).ReportPeaks(a_batch(a_peak(name, device_bytes * 1.2, ended=True)))
        running.process.kill()
        running.process.wait()
        with pytest.raises(grpc.RpcError):
            TelemetryServiceStub(channel).ReportPeaks(a_batch(a_peak(name, device_bytes * 1.2, ended=True)), timeout=1)
    with run_service() as running, grpc.insecure_channel(running.grpc, options=[("grpc.use_local_subchannel_pool", 1)]) as channel:
        stub = PredictionServiceStub(channel)
        found = stub.GetPrediction(pb.GetPredictionRequest(prediction=name))
        assert found.stored.observed_device_bytes == int(device_bytes * 1.2)
        TelemetryServiceStub(channel).ReportPeaks(a_batch(a_peak(name, device_bytes * 1.2, ended=True)))
        again = stub.Predict(pb.PredictRequest(job=a_job(framework="huggingface", micro_batch_size=4)))
        assert again.calibration.observations == 1
        assert again.peak.bound_bytes > answer.peak.bound_bytes
