"""The card that a job asks for."""

from __future__ import annotations

from dataclasses import dataclass

from peakgate.memory.catalog.gpus import GpuSpec, find_gpu
from peakgate.memory.job import Job


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """What NVML reports as the card's total, and the total without what the driver keeps."""

    gpu: str
    total_bytes: int
    usable_bytes: int
    is_part: bool = False
    """Whether that is a part of the card, the rest of which others have."""


PART_BELOW = 0.9
"""Of a card's catalogued total. What NVML reports of cards of one name differs by some hundredths (catalog/gpus.py)."""


def capacity_of(job: Job) -> Capacity | None:
    """The job's card; stated bytes are the total of the card, or of the part of it that the job gets, and win over the catalogue.

    None when no card is named. Raises JobError.
    """
    spec = find_gpu(job.gpu.type) if job.gpu.type else None
    if job.gpu.memory_bytes:
        return _stated(job.gpu.memory_bytes, spec)
    if spec is None:
        return None
    return Capacity(gpu=spec.name, total_bytes=spec.total_bytes, usable_bytes=spec.usable_bytes)


def _stated(total_bytes: int, spec: GpuSpec | None) -> Capacity:
    """A part of a card has its part of what the driver keeps of the whole."""
    if spec is None:
        return Capacity(gpu="", total_bytes=total_bytes, usable_bytes=total_bytes)
    reserved_bytes = spec.reserved_bytes * min(total_bytes, spec.total_bytes) // spec.total_bytes
    is_part = total_bytes < PART_BELOW * spec.total_bytes
    return Capacity(gpu=spec.name, total_bytes=total_bytes, usable_bytes=total_bytes - reserved_bytes, is_part=is_part)


def capability_of(job: Job) -> tuple[int, int] | None:
    """CUDA compute capability of the job's card, when it is known."""
    return find_gpu(job.gpu.type).compute_capability if job.gpu.type else None
