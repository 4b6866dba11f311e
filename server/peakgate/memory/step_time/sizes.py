"""The numbers of a plan, apart from its words."""

from __future__ import annotations

from dataclasses import dataclass, fields

from peakgate.memory.plan import Plan
from peakgate.memory.step_time.arithmetic import Number


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """The numbers of a plan; each an int or a float, or an array with one entry a plan.

    What is the same in all plans is best one number, which costs nothing, and arrays are best of float64, which are not copied.
    `checkpoint_layers` 0 means all of them, as in a job.
    """

    micro_batch: Number = 1
    sequence: Number = 1
    target: Number = 0
    accumulation: Number = 1
    data: Number = 1
    shard: Number = 1
    tensor: Number = 1
    pipeline: Number = 1
    virtual_pipeline: Number = 1
    context: Number = 1
    expert: Number = 1
    world: Number = 1
    node_gpus: Number = 8
    checkpoint_layers: Number = 0


def sizes_of(plan: Plan) -> Sizes:
    """The numbers of one plan."""
    degrees = plan.degrees
    return Sizes(
        micro_batch=plan.micro_batch,
        sequence=plan.sequence,
        target=plan.target,
        accumulation=plan.accumulation,
        data=degrees.data,
        shard=degrees.shard,
        tensor=degrees.tensor,
        pipeline=degrees.pipeline,
        virtual_pipeline=degrees.virtual_pipeline,
        context=degrees.context,
        expert=degrees.expert,
        world=degrees.world,
        node_gpus=plan.node_gpus,
        checkpoint_layers=plan.checkpoint_layers,
    )


def as_floats(sizes: Sizes) -> Sizes:
    """The same in floating point: products of whole numbers would leave 64 bits."""
    return Sizes(**{field.name: _as_float(getattr(sizes, field.name)) for field in fields(sizes)})


def _as_float(value: Number) -> Number:
    return value if str(getattr(value, "dtype", "")) == "float64" else 1.0 * value
