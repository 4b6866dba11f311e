"""Attempts of a history with full defaults."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.histories import a_document, figures

from peakgate.calibration import Observation, Subject
from peakgate.server.simulation.past import Past, Truth
from peakgate.v1.calibration_simulation_pb2 import PastAttempt
from peakgate.v1.document import parse_job
from peakgate.v1.times import timestamp

OF = ("h100-80gb", "llama-3.2-3b", 2048, 4)
PREDICTION, CARD_BYTES = figures(*OF)
DEVICE_BYTES = PREDICTION.device_bytes
GB = 1_000_000_000
NOW = 1_000_000.0


def an_attempt(*, finished: float | None = 1000.0, submitted: float | None = None, card: str = OF[0], **fields: object) -> PastAttempt:
    """It finished at 1000 s and showed what was predicted of the device, unless something else is stated."""
    values = {"outcome": "finished", "observed_bytes": DEVICE_BYTES} | fields
    job = parse_job(a_document(card, *OF[1:]))
    if not card:
        job.gpu.Clear()
    attempt = PastAttempt(job=job, **values)  # type: ignore[arg-type]  # protobuf checks the types
    if finished is not None:
        attempt.finish_time.CopyFrom(timestamp(finished))
    if submitted is not None:
        attempt.submit_time.CopyFrom(timestamp(submitted))
    return attempt


def a_past(number: int, *, need_gb: float = 40.0, required_gb: float = 40.0, truth: Truth | None = None, **fields: Any) -> Past:
    """The job of an 80 GB card that was submitted when the one before ended, and needed this much."""
    required_bytes, need_bytes = round(required_gb * GB), round(need_gb * GB)
    subject = Subject(
        group="g",
        framework="f",
        user=f"user-{number % 9}",
        card_bytes=80 * GB,
        required_bytes=required_bytes,
        device_bytes=required_bytes,
        runtime_bytes=2 * GB,
        activation_bytes=10 * GB,
        state_bytes=10 * GB,
    )
    dies = need_gb > 80
    observation = Observation(
        prediction=str(number),
        subject=subject,
        lower_bytes=80 * GB if dies else need_bytes,
        upper_bytes=None if dies else need_bytes,
        finished_at=number + 1.0,
    )
    past = Past(
        name=str(number),
        subject=subject,
        usable_bytes=80 * GB,
        truth=truth if truth is not None else Truth.DIES if dies else Truth.FITS,
        observation=observation,
        need_bytes=None if dies else float(need_bytes),
        submitted_at=float(number) + 0.5,
        finished_at=number + 1.0,
        draw=0.5,
    )
    return replace(past, **fields)
