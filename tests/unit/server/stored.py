"""What a store holds before anything was observed of it."""

from __future__ import annotations

from peakgate.server.store.records import PredictionContent, PredictionRow

MODEL = "1"


def a_prediction(
    name: str = "predictions/0",
    *,
    job: bytes = b"",
    model_version: str = MODEL,
    created_us: int = 0,
    request_id: str | None = None,
    subject: str = "",
) -> PredictionRow:
    """A prediction of 50,000 bytes and a device peak of 58,000. Without a subject nothing is learned of it."""
    content = PredictionContent(
        job=job,
        job_digest=f"digest of {job.hex()}",
        job_name="a job",
        verdict="ADMIT",
        group="g",
        required_bytes=50_000,
        device_bytes=58_000,
        bound_bytes=55_000,
        total_bytes=80_000,
        model_version=model_version,
        calibration_version="1.0",
        answer=b"answer",
        subject=subject,
    )
    return PredictionRow(prediction=name, created_us=created_us, request_id=request_id, request_digest=None, content=content)
