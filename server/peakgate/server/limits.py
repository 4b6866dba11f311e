"""How large a message and a job may be. What is larger is refused with DOCUMENT_TOO_LARGE, over gRPC, HTTP and the command alike."""

from __future__ import annotations

from peakgate.server.errors import PeakgateError
from peakgate.v1.training_job_pb2 import TrainingJob

LARGEST_MESSAGE_BYTES = 16 << 20
"""16 MiB: what gRPC takes from the wire. Far above the other limits, so that what passes them is told which limit it passed."""

LARGEST_DOCUMENT_BYTES = 1 << 20
"""1 MiB: a document as text, and a serialised job with a traced profile."""

LARGEST_JOB_BYTES = 64 << 10
"""64 KiB: any other job, serialised. A usual one takes some hundred bytes, one with a whole config.json a few kilobytes."""


def check_size(job: TrainingJob, size_bytes: int) -> None:
    """Raises DOCUMENT_TOO_LARGE for a job whose serialisation is larger than a job of its kind may be: every one is stored."""
    limit_bytes = LARGEST_DOCUMENT_BYTES if job.model.HasField("profile") else LARGEST_JOB_BYTES
    if size_bytes > limit_bytes:
        raise too_large("the job", size_bytes, limit_bytes)


def too_large(what: str, size_bytes: int, limit_bytes: int) -> PeakgateError:
    """The error, with the remedy."""
    remedy = "leave out what describes no memory, such as the label tables of a config.json, or state the sizes under model.transformer"
    return PeakgateError("DOCUMENT_TOO_LARGE", f"{what} is larger than {limit_bytes} bytes ({size_bytes}): {remedy}", hint=remedy)
