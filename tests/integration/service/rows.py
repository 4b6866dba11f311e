"""Rows with full defaults, for the tests of the store, and the answer that one is of."""

from __future__ import annotations

import dataclasses
from typing import Any

from tests.unit.server import attempts

from peakgate.server.store.records import CalibrationRow, Lease, ObservationRow, PeakRow, PhasePeakRow
from peakgate.server.store.sql import SqlStore
from peakgate.v1.prediction_pb2 import PredictResponse
from peakgate.v1.prediction_service_pb2 import PredictRequest
from peakgate.v1.training_job_pb2 import TrainingJob


def a_peak(**changes: object) -> PeakRow:
    """The whole job on a GPU, seen once while it runs."""
    return attempts.a_peak(**{"gpu_total_bytes": 80, "peak_bytes": 60, "first_us": 5, "last_us": 5, "peak_us": 5, "ended": 0} | changes)


def a_phase(**changes: object) -> PhasePeakRow:
    """Of the process that `a_peak` is of."""
    row = PhasePeakRow(
        cluster="c",
        node="n",
        gpu_uuid="GPU-0",
        job="1",
        restart=0,
        prediction="predictions/0",
        pid=0,
        pid_start_ticks=0,
        phase="forward",
        allocated_bytes=1,
        reserved_bytes=2,
    )
    return dataclasses.replace(row, **changes)  # type: ignore[arg-type]  # the names are those of the record


def an_observation(prediction: str, **changes: object) -> ObservationRow:
    """What became of the only attempt of a prediction: it was learned from."""
    row = ObservationRow(
        prediction=prediction,
        job="1",
        restart=0,
        observed_bytes=60,
        predicted_bytes=60,
        lower_bytes=50,
        upper_bytes=60,
        finished_us=1,
        applied_us=1,
        learned=True,
        reason="",
        message="",
    )
    return dataclasses.replace(row, **changes)  # type: ignore[arg-type]  # the names are those of the record


def a_version(epoch: str = "1", **changes: object) -> CalibrationRow:
    """A calibration that was not stored yet."""
    row = CalibrationRow(sequence=0, version=epoch, state="active", created_us=1, observations=1, groups="[]", body="{}")
    return dataclasses.replace(row, **changes)  # type: ignore[arg-type]  # the names are those of the record


def the_writer(store: SqlStore, holder: str = "me") -> Lease:
    """The lease of who may write, taken from whoever has it."""
    fence = store.take_lease(holder, seconds=10, by_force=True)
    assert fence is not None
    return Lease(holder, fence)


async def predicted(service: Any, job: TrainingJob) -> PredictResponse:
    """The answer to a job, which is stored."""
    answer: PredictResponse = await service.predictions.Predict(PredictRequest(job=job))
    return answer
