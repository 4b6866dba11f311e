"""What moves with a field: the GPUs of a job have two names, and ranks that share one copy of the states follow their number."""

from __future__ import annotations

from peakgate.memory.check import world_of
from peakgate.memory.job import Job
from peakgate.server.memory import Changes

GPU_COUNTS = ("gpu.count", "parallelism.world_size")


def moved(job: Job, path: str, value: int | float) -> Changes:
    """The changes that set a field. A number of GPUs is set under both names where both are stated, with a shard degree of all ranks."""
    if path not in GPU_COUNTS:
        return ((path, value),)
    stated = dict(zip(GPU_COUNTS, (job.gpu.count, job.parallelism.world_size), strict=True))
    counts: Changes = tuple((name, int(value)) for name in GPU_COUNTS if name == path or stated[name])
    return (*counts, *_shards(job, int(value)))


def _shards(job: Job, gpus: int) -> Changes:
    p = job.parallelism
    holders = (p.tensor or 1) * (p.pipeline or 1)
    if not p.shard_degree or p.shard_degree != world_of(job) // holders or gpus % holders:
        return ()
    return (("parallelism.shard_degree", gpus // holders),)
