"""Diagnoses for tests: from text, with a job that the embedded service judges."""

from __future__ import annotations

from typing import Any

from peakgate.client.connect import open_client
from peakgate.client.diagnose.diagnosis import Diagnosis, Judged, diagnose
from peakgate.client.diagnose.dimensions import dimensions_of
from peakgate.client.diagnose.find import find_failure
from peakgate.v1.document import parse_job


def judged(document: dict[str, Any], capacity: int | None = None) -> Judged:
    """A job document with what the service says of it, on a card of `capacity` bytes where it names none."""
    job = parse_job(document)
    if capacity and not job.gpu.type and not job.gpu.memory_bytes:
        job.gpu.memory_bytes = capacity
    with open_client() as client:
        advice = client.suggest(job)
        return Judged(label="job", sizes=dimensions_of(job, advice.prediction.model, client.list_models().models), advice=advice)


def diagnosed(text: str, document: dict[str, Any] | None = None, *, stage: str = "") -> Diagnosis:
    """What is said of a log and a job."""
    failure = find_failure([text])
    capacity = failure.message.bytes_of("capacity") if failure else None
    return diagnose(failure, stage, judged(document, capacity) if document else None)
