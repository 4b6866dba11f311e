"""The card that a job asks for."""

from __future__ import annotations

from dataclasses import dataclass

from peakgate.memory.catalog.gpus import find_gpu
from peakgate.memory.job import Job


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """What NVML reports as the card's total, and the total without what the driver keeps."""

    gpu: str
    total_bytes: int
    usable_bytes: int


def capacity_of(job: Job) -> Capacity | None:
    """The job's card; stated bytes are the card's total and win over the catalogue. None when no card is named. Raises JobError."""
    spec = find_gpu(job.gpu.type) if job.gpu.type else None
    if job.gpu.memory_bytes:
        reserved = spec.reserved_bytes if spec else 0
        return Capacity(gpu=spec.name if spec else "", total_bytes=job.gpu.memory_bytes, usable_bytes=job.gpu.memory_bytes - reserved)
    if spec is None:
        return None
    return Capacity(gpu=spec.name, total_bytes=spec.total_bytes, usable_bytes=spec.usable_bytes)


def capability_of(job: Job) -> tuple[int, int] | None:
    """CUDA compute capability of the job's card, when it is known."""
    return find_gpu(job.gpu.type).compute_capability if job.gpu.type else None
