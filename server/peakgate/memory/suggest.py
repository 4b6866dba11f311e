"""The fixes of Lesson 6, section 3 ("Does it fit, and what is the cheapest fix?"), in its order of cost.

1. FlashAttention, or selective recomputation: almost free. 2. ZeRO-1 or ZeRO-2: the communication of plain data parallelism.
3. A smaller micro-batch with accumulation. 4. Full checkpointing (+33 % FLOPs), ZeRO-3 or FSDP (1.5× the communication). 5. Tensor and
sequence parallelism inside a node, then pipeline parallelism. 6. Offload of the optimizer.
The global batch stays the same; a fix that the job already has, or that its model does not allow, is not in the list.
"""

from __future__ import annotations

from collections.abc import Iterator

from peakgate.memory.change import Value, with_changes
from peakgate.memory.check import check, world_of
from peakgate.memory.job import Job
from peakgate.memory.lengths import lengths_of
from peakgate.memory.model import describe
from peakgate.memory.plan import Plan
from peakgate.memory.prediction import Change, JobError
from peakgate.memory.resolve import resolve
from peakgate.memory.sharding import SHARDED

NOT_COSTED = 0.0
"""Relative step time of a change whose cost depends on links that the job does not describe."""

FULL_CHECKPOINTING_TIME = 8 / 6
"""8Ψ instead of 6Ψ FLOPs per token (Lesson 6, section 3)."""


def fixes(job: Job) -> tuple[Change, ...]:
    """Legal changes, cheapest first, not yet checked for fit; empty when the job does not say enough. Raises JobError."""
    described = describe(job.model)
    if described.architecture is None or not job.batch.micro_batch_size or not lengths_of(job, described.architecture).sequence:
        return ()
    plan = resolve(job, described.architecture, world_of(job)).plan
    listed = (*_attention(plan), *_zero(plan), *_micro_batch(plan), *_recompute_or_shard(plan), *_model_parallel(plan), *_offload(plan))
    return tuple(change for change in listed if _is_legal(job, change))


def _is_legal(job: Job, change: Change) -> bool:
    """Whether the changed job can be judged: what the job states elsewhere (a shard degree, layers a stage) may contradict it."""
    try:
        check(with_changes(job, change.changes))
    except JobError:
        return False
    return True


def _change(title: str, time: float, why: str, *changes: tuple[str, Value]) -> Change:
    return Change(title=title, changes=changes, relative_step_time=time, why=why)


def _attention(plan: Plan) -> Iterator[Change]:
    if plan.attention != "eager":
        return
    yield _change(
        "FlashAttention", 1.0, "never stores the s × s scores; almost free, usually faster", ("attention.implementation", "flash")
    )
    if plan.checkpointing == "none":
        s, h = plan.sequence, plan.architecture.dims["h"]
        yield _change(
            "selective recomputation of the attention core",
            1 + s / (18 * h + 3 * s),
            "rebuilds the scores from Q, K and V in the backward pass",
            ("checkpointing.mode", "selective"),
        )


def _zero(plan: Plan) -> Iterator[Change]:
    if plan.degrees.data == 1 or plan.degrees.sharding not in ("none", "ddp", "zero1"):
        return
    if plan.degrees.sharding != "zero1":
        yield _change(
            "ZeRO-1", 1.0, "shards optimizer states over the data parallel GPUs; same communication", ("parallelism.sharding", "zero1")
        )
    yield _change(
        "ZeRO-2",
        1.0,
        "shards optimizer states and gradients over the data parallel GPUs; same communication",
        ("parallelism.sharding", "zero2"),
    )


def _micro_batch(plan: Plan) -> Iterator[Change]:
    size, steps = plan.micro_batch // plan.sequences, plan.accumulation
    while size % 2 == 0:
        size, steps = size // 2, steps * 2
        yield _change(
            f"micro-batch {size} with {steps} accumulation steps",
            1.0,
            "the same global batch in smaller pieces; free until the matrix products get too few tokens",
            ("batch.micro_batch_size", size),
            ("batch.gradient_accumulation_steps", steps),
        )


def _recompute_or_shard(plan: Plan) -> Iterator[Change]:
    if plan.checkpointing != "full":
        yield _change(
            "full activation checkpointing",
            FULL_CHECKPOINTING_TIME,
            "keeps only the input of each layer and runs its forward pass again: 33 % more FLOPs",
            ("checkpointing.mode", "full"),
        )
    if plan.degrees.data > 1 and plan.degrees.sharding not in ("zero3", "fsdp", "hsdp") and plan.degrees.pipeline == 1:
        name = "zero3" if plan.framework in ("deepspeed", "textbook") else "fsdp"
        yield _change(
            {"zero3": "ZeRO-3", "fsdp": "FSDP"}[name],
            NOT_COSTED,
            "shards parameters too; 1.5× the communication of plain data parallelism",
            ("parallelism.sharding", name),
        )


def _model_parallel(plan: Plan, node_gpus: int = 8) -> Iterator[Change]:
    degrees, dims = plan.degrees, plan.architecture.dims
    if degrees.tensor == 1:
        for tensor in (2, 4, 8):
            if tensor <= node_gpus and dims["a"] % tensor == 0 and dims["n"] % tensor == 0:
                yield _change(
                    f"tensor and sequence parallelism over {tensor} GPUs",
                    NOT_COSTED,
                    "divides states and activations; communication in every layer, so inside a node",
                    *_more_gpus(plan, tensor),
                    ("parallelism.tensor", tensor),
                    ("parallelism.sequence_parallel", True),
                )
    if degrees.pipeline == 1:
        for pipeline in (2, 4, 8):
            if pipeline <= dims["L"] and degrees.sharding not in ("zero3", "fsdp", "hsdp"):
                yield _change(
                    f"pipeline parallelism over {pipeline} stages",
                    NOT_COSTED,
                    "divides the layers; the first stage holds as many micro-batches as there are stages",
                    *_more_gpus(plan, pipeline),
                    ("parallelism.pipeline", pipeline),
                )


def _more_gpus(plan: Plan, degree: int) -> tuple[tuple[str, Value], ...]:
    """The job's own GPUs when its data degree can give them (accumulation then keeps the global batch), else more of them."""
    degrees = plan.degrees
    if degrees.data % degree:
        return (("parallelism.world_size", degrees.world * degree), ("gpu.count", degrees.world * degree))
    steps: tuple[tuple[str, Value], ...] = (("batch.gradient_accumulation_steps", plan.accumulation * degree),)
    sharded = degrees.sharding in SHARDED and degrees.shard % degree == 0
    return (*steps, ("parallelism.shard_degree", degrees.shard // degree)) if sharded else steps


def _offload(plan: Plan) -> Iterator[Change]:
    if not plan.offload_optimizer and plan.lora is None:
        yield _change(
            "offload of the optimizer to the CPU", NOT_COSTED, "the last resort: the link to the CPU is slow", ("offload.optimizer", "cpu")
        )
