"""Rows with full defaults, for the tests of the store."""

from __future__ import annotations

import dataclasses

from peakgate.server.store.records import CalibrationRow, ObservationRow, PeakRow, PhasePeakRow, PredictionContent, PredictionRow


def a_prediction(name: str, *, created_us: int = 0, request_id: str | None = None) -> PredictionRow:
    """A small prediction; all of them are of one job."""
    content = PredictionContent(
        job=b"job",
        job_digest="digest",
        job_name="a job",
        verdict="ADMIT",
        group="g",
        required_bytes=50,
        device_bytes=60,
        bound_bytes=55,
        total_bytes=80,
        model_version="1",
        calibration_version="1.0",
        answer=b"answer",
    )
    return PredictionRow(prediction=name, created_us=created_us, request_id=request_id, request_digest=None, content=content)


def a_peak(**changes: object) -> PeakRow:
    """The whole job on a GPU."""
    row = PeakRow(
        cluster="c",
        node="n",
        gpu_uuid="GPU-0",
        job="1",
        restart=0,
        prediction="predictions/0",
        pid=0,
        pid_start_ticks=0,
        gpu_name="g",
        gpu_total_bytes=80,
        peak_bytes=60,
        source="sampled",
        torch_allocated_bytes=0,
        torch_reserved_bytes=0,
        first_us=5,
        last_us=5,
        peak_us=5,
        samples=1,
        gaps=0,
        flags=0,
        ended=0,
        uid=0,
        boot_id="b",
        agent_version="1",
        driver_version="1",
    )
    return dataclasses.replace(row, **changes)  # type: ignore[arg-type]  # the names are those of the record


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


def an_observation(prediction: str) -> ObservationRow:
    """What became of the only attempt of a prediction: it was learned from."""
    return ObservationRow(
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


def a_version(version: str) -> CalibrationRow:
    """A calibration that was not stored yet."""
    return CalibrationRow(sequence=0, version=version, state="active", created_us=1, observations=1, groups="[]", body="{}")
