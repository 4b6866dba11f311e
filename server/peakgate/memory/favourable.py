"""The most favourable value of each field that a job leaves open: a rejection must hold under all of them.

Only what a library or a script may have decided without a word in the job counts as open; what has to be switched on by hand in the
document (adapters, offload, more GPUs) is absent when it is not stated. A job in the textbook's terms leaves nothing open: there an
unstated field is the textbook's own. A traced profile leaves nothing open either.
"""

from __future__ import annotations

from peakgate.memory.change import Value, value_at
from peakgate.memory.check import world_of
from peakgate.memory.job import Job, Parallelism
from peakgate.memory.methods.decide import method_of
from peakgate.memory.plan import SHARDED

OPEN: tuple[tuple[str, Value], ...] = (
    ("attention.implementation", "flash"),
    ("attention.mask", "ones"),
    ("checkpointing.mode", "full"),
    ("loss.implementation", "fused"),
    ("loss.keep_logits", False),
    ("optimizer.implementation", "fused"),
    ("optimizer.set_to_none", True),
    ("optimizer.name", "sgd"),
    ("dropout.attention", 0.0),
    ("dropout.hidden", 0.0),
    ("precision.recipe", "bf16"),
    ("framework.bitsandbytes", "0.45"),
    ("framework.expandable_segments", True),
)

STEPS_IN_BACKWARD = ("torchtune", "torch")
"""Frameworks in which an optimizer for each parameter may step in the backward pass; a job that names none may be of one."""

OPEN_OF_METHODS: tuple[tuple[str, Value], ...] = (("method.reference", "none"), ("batch.target_length", 1))
"""A reference model's log-probabilities may have been computed before, and an answer may be short."""

WRITTEN_OUT = (
    "attention.implementation",
    "attention.mask",
    "checkpointing.mode",
    "loss.implementation",
    "dropout.attention",
    "dropout.hidden",
)
"""What a plain network says in its operations, or has to switch on by hand."""

FAR = 1024
"""GPUs of a world that is not stated: sharded over so many, model states are next to nothing."""

OPEN_WHEN_PARALLEL: tuple[tuple[str, Value], ...] = (("parallelism.sharding", "fsdp"),)
OPEN_BY_FRAMEWORK: dict[str, tuple[tuple[str, Value], ...]] = {"torchtitan": (("framework.version", "0.2.1"),)}
"""A version that is not stated may be the one that needs the least (`profiles/torchtitan.py`)."""

OPEN_WHEN_TENSOR_PARALLEL: tuple[tuple[str, Value], ...] = (("parallelism.sequence_parallel", True),)

OPEN_WHEN_CONTEXT_PARALLEL: tuple[tuple[str, Value], ...] = (("parallelism.context_type", "ring"),)
"""Two buffers of one rank's keys and values, where a gather holds those of all."""


def _far(p: Parallelism) -> int:
    """A world of about so many GPUs that its degrees divide."""
    share = (p.tensor or 1) * (p.pipeline or 1) * (p.context or 1) * (p.expert or 1)
    return share * max(1, FAR // share)


def favourable(job: Job) -> tuple[tuple[str, Value], ...]:
    """(path, value) of every open field, most telling first."""
    if job.framework.name == "textbook" or job.model.profile is not None:
        return ()
    rows = OPEN
    if job.model.operations is not None:
        rows = tuple(row for row in OPEN if row[0] not in WRITTEN_OUT)
    if job.framework.name in (None, *STEPS_IN_BACKWARD):
        rows += (("optimizer.in_backward", True),)
    rows += OPEN_BY_FRAMEWORK.get(job.framework.name or "", ())
    if world_of(job) > (job.parallelism.tensor or 1) * (job.parallelism.pipeline or 1):
        rows += OPEN_WHEN_PARALLEL
    if method_of(job).loss:
        rows += OPEN_OF_METHODS
    if (job.parallelism.tensor or 1) > 1:
        rows += OPEN_WHEN_TENSOR_PARALLEL
    if (job.parallelism.context or 1) > 1:
        rows += OPEN_WHEN_CONTEXT_PARALLEL
    if job.parallelism.sharding in SHARDED and job.gpu.count is None and job.parallelism.shard_degree is None:
        rows += (("parallelism.world_size", _far(job.parallelism)),)
    if job.batch.sequence_length_is == "cap" and job.batch.sequence_lengths is None:
        rows += (("batch.sequence_lengths.max", 1),)  # the data may be much shorter than the cap
    return tuple((path, value) for path, value in rows if value_at(job, path) is None)
