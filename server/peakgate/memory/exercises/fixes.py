"""Exercise 5: the cheapest fix, and the largest micro-batch (Lesson 6, section 3, "Does it fit"; section 4, step 8).

The lesson's own list, each fix tried by itself and nothing ranked: `peakgate suggest` is the search over combined plans.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass

from peakgate.memory.absurd import LARGEST
from peakgate.memory.change import Value, value_at, with_changes
from peakgate.memory.check import check, world_of
from peakgate.memory.job import Job
from peakgate.memory.predict import predict
from peakgate.memory.prediction import JobError

GPU_BYTES = 80 * 10**9
"""The lesson's card."""

KEEP_FREE = 0.15
"""Of the card, for buffers and fragmentation: the lesson says 10 to 20 %, and takes 15 % in section 4, step 8."""

MICRO_BATCH = "batch.micro_batch_size"

Row = tuple[str, tuple[tuple[str, Value], ...]]
"""(title, changes)."""

ALMOST_FREE: tuple[Row, ...] = (
    ("nothing: it fits", ()),
    ("FlashAttention", (("attention.implementation", "flash"),)),
    ("selective recomputation", (("checkpointing.mode", "selective"),)),
    ("ZeRO-1", (("parallelism.sharding", "zero1"),)),
    ("ZeRO-2", (("parallelism.sharding", "zero2"),)),
)
RECOMPUTE_OR_SHARD: tuple[Row, ...] = (
    ("full checkpointing", (("checkpointing.mode", "full"),)),
    ("ZeRO-3", (("parallelism.sharding", "zero3"),)),
)
MODEL_PARALLEL: tuple[Row, ...] = (
    *(
        (f"tensor + sequence parallelism over {t} GPUs", (("parallelism.tensor", t), ("parallelism.sequence_parallel", True)))
        for t in (2, 4, 8)
    ),
    *((f"pipeline parallelism over {p} GPUs", (("parallelism.pipeline", p),)) for p in (2, 4, 8)),
)
LAST_RESORT: tuple[Row, ...] = (("offload of the optimizer", (("offload.optimizer", "cpu"),)),)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fix:
    """A fix that fits: what it changes in the job, and the bytes that the worst GPU then needs."""

    title: str
    changes: tuple[tuple[str, Value], ...]
    needed_bytes: int


def cheapest_fix(job: Job, gpu_bytes: int = GPU_BYTES, keep_free: float = 0.0) -> Fix | None:
    """The first of the lesson's fixes that makes the job fit on cards of `gpu_bytes`; None where none does by itself.

    `keep_free`: share of the card that is not to be used. Raises JobError for a job that cannot be judged.
    """
    check(job)
    for title, changes in fixes(job):
        needed = _needed_bytes(with_changes(job, changes))
        if needed is not None and needed <= (1 - keep_free) * gpu_bytes:
            return Fix(title=title, changes=changes, needed_bytes=needed)
    return None


def largest_micro_batch(job: Job, gpu_bytes: int = GPU_BYTES, keep_free: float = KEEP_FREE) -> int:
    """The most sequences of a micro-batch with which the job fits; 0 where not even one does."""

    def too_many(size: int) -> bool:
        return predict(with_changes(job, [(MICRO_BATCH, size)])).required_bytes > (1 - keep_free) * gpu_bytes

    return bisect_left(range(1, LARGEST[MICRO_BATCH] + 1), True, key=too_many)


def fixes(job: Job) -> Iterator[Row]:
    """The lesson's list in its order. The global batch stays the same."""
    yield from ALMOST_FREE
    yield from _smaller_micro_batches(job)
    yield from RECOMPUTE_OR_SHARD
    yield from _on_more_gpus(job)
    yield from LAST_RESORT


def _smaller_micro_batches(job: Job) -> Iterator[Row]:
    size, steps = job.batch.micro_batch_size or 1, job.batch.gradient_accumulation_steps or 1
    while size % 2 == 0:
        size, steps = size // 2, steps * 2
        changes = ((MICRO_BATCH, size), ("batch.gradient_accumulation_steps", steps))
        yield f"micro-batch {size} with {steps} accumulation steps", changes


def _on_more_gpus(job: Job) -> Iterator[Row]:
    """Each copy of the model takes as many GPUs as the degree says, and the job as many times more. A degree in use stays as it is."""
    for title, changes in MODEL_PARALLEL:
        path, degree = changes[0]
        if isinstance(degree, int) and value_at(job, path) in (None, 1):
            world = world_of(job) * degree
            yield title, (*changes, ("parallelism.world_size", world), ("gpu.count", world))


def _needed_bytes(job: Job) -> int | None:
    """None where the job contradicts itself (heads that the tensor parallel degree does not divide) or is not counted whole."""
    try:
        prediction = predict(job)
    except JobError:
        return None
    return None if prediction.undecided else prediction.required_bytes
