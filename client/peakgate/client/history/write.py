"""An attempt of a history as a line of a file: what `read.py` reads."""

from __future__ import annotations

from peakgate.client.history.read import FIGURES, WORDS
from peakgate.v1.calibration_simulation_pb2 import PastAttempt
from peakgate.v1.document import Plain, job_to_dict


def attempt_as_dict(attempt: PastAttempt) -> dict[str, Plain]:
    """Only what is known."""
    values: dict[str, Plain] = {"attempt": attempt.attempt, "job": job_to_dict(attempt.job)}
    if attempt.HasField("submit_time"):
        values["submitted_at"] = attempt.submit_time.ToJsonString()
    if attempt.HasField("finish_time"):
        values["finished_at"] = attempt.finish_time.ToJsonString()
    for key in (*WORDS, *FIGURES):
        if value := getattr(attempt, key):
            values[key] = value
    if attempt.has_statistics:
        values["has_statistics"] = True
    if attempt.gpu_total_bytes:
        values["gpu"] = {"total_bytes": attempt.gpu_total_bytes}
    return values
