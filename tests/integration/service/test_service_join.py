"""What is told of a request id is of the prediction that it was asked for under."""

from __future__ import annotations

import uuid
from typing import Any

import grpc
import pytest
from tests.databases import Database
from tests.integration.service.conftest import StartService
from tests.integration.service.shadows import AJob, active
from tests.integration.service.telling import a_batch, a_peak, an_end

from peakgate.v1 import prediction_service_pb2 as pb
from peakgate.v1 import telemetry_service_pb2 as telemetry_pb
from peakgate.v1.prediction_pb2 import PredictResponse


async def asked_under(service: Any, a_job: AJob, request_id: str) -> PredictResponse:
    """The prediction of a job."""
    job = a_job(framework="huggingface", micro_batch_size=4)
    answer: PredictResponse = await service.predictions.Predict(pb.PredictRequest(job=job, brief=True, request_id=request_id))
    return answer


async def found(service: Any, name: str) -> pb.GetPredictionResponse:
    """What is stored under a name."""
    answer: pb.GetPredictionResponse = await service.predictions.GetPrediction(pb.GetPredictionRequest(prediction=name))
    return answer


@pytest.mark.parametrize("prefix", ["", "predictions/"])
async def test_what_is_told_of_a_request_id_is_learned(service: Any, a_job: AJob, database: Database, prefix: str) -> None:
    """Peaks and the end name the uid alone; the rows, the observation and the calibration are those of the prediction."""
    uid = str(uuid.uuid4())
    before = await asked_under(service, a_job, uid)
    named = prefix + uid
    phase = telemetry_pb.PhasePeak(phase="backward", allocated_bytes=10, reserved_bytes=20)
    told = [a_peak(named, int(before.peak.device_bytes), ended=ended, phases=[phase]) for ended in (False, True)]
    for number, peak in enumerate(told, 1):
        assert not (await service.telemetry.ReportPeaks(a_batch(peak, sequence=number))).refused
    await service.telemetry.ReportJobEvent(an_end(named))
    for table in ("peaks", "phase_peaks", "job_events", "observations"):
        assert database.rows(f"SELECT DISTINCT prediction FROM {table}") == [(before.prediction,)], table
    assert active(service).observations == 1
    (observation,) = (await found(service, before.prediction)).observations
    assert (observation.learned, observation.observed_bytes) == (True, before.peak.device_bytes)
    assert (await found(service, named)).prediction.prediction == before.prediction


async def test_what_nobody_was_asked_for_under_is_unknown(service: Any, a_job: AJob, database: Database) -> None:
    """It is kept as an unknown name is, joined to nothing; so is a uid whose prediction was a dry run."""
    uid, job = str(uuid.uuid4()), a_job(framework="huggingface", micro_batch_size=4)
    await service.predictions.Predict(pb.PredictRequest(job=job, brief=True, request_id=uid, validate_only=True))
    for name in (uid, "predictions/0123"):
        assert (await service.telemetry.ReportPeaks(a_batch(a_peak(name, 1e9, ended=True)))).stored == 1
        await service.telemetry.ReportJobEvent(an_end(name))
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await found(service, name)
        assert refused.value.code() is grpc.StatusCode.NOT_FOUND
    assert database.rows("SELECT prediction FROM peaks ORDER BY prediction") == sorted([(uid,), ("predictions/0123",)])
    assert database.rows("SELECT * FROM observations") == []


async def test_another_replica_joins_what_this_one_was_asked(start_service: StartService, a_job: AJob, database: Database) -> None:
    """And a batch holds names, uids and neither, each with its own."""
    uid = str(uuid.uuid4())
    async with start_service() as one, start_service() as running:
        other: Any = running
        first = await asked_under(one, a_job, uid)
        second = await asked_under(one, a_job, str(uuid.uuid4()))
        await one.core.audit.flush()
        peaks = [a_peak(name, 1e9, job=str(place)) for place, name in enumerate((uid, second.prediction, ""))]
        assert (await other.telemetry.ReportPeaks(a_batch(*peaks))).stored == len(peaks)
        assert database.rows("SELECT job, prediction FROM peaks ORDER BY job") == [
            ("0", first.prediction),
            ("1", second.prediction),
            ("2", ""),
        ]
