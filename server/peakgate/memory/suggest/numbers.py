"""The numbers of a plan: what differs between plans that say the same words, and how they stand in a plan and a stage."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from peakgate.memory.pipeline import Stage
from peakgate.memory.plan import Plan

OF_PLAN = ("micro_batch", "sequence", "target", "accumulation", "checkpoint_layers")
OF_DEGREES = ("world", "data", "shard", "tensor", "pipeline", "virtual_pipeline", "context", "expert", "expert_shard")
OF_STAGE = ("layers", "in_flight", "chunks", "start")

ALWAYS = ("micro_batch", "sequence")
"""What varies in every compiled plan; of the others what is 1 or 0 is part of the words: a plan without a pipeline has no stages."""

Get = Callable[[str, int], int]


def varying_of(plan: Plan) -> tuple[str, ...]:
    """The names of the numbers that a compiled plan takes as they come."""
    degrees = plan.degrees
    of_stage = OF_STAGE if degrees.pipeline > 1 else ()
    more = [name for name in OF_PLAN if name not in ALWAYS and getattr(plan, name) > 1]
    return (*ALWAYS, *more, *(name for name in OF_DEGREES if getattr(degrees, name) > 1), *of_stage)


def with_numbers(plan: Plan, stage: Stage, get: Get) -> tuple[Plan, Stage]:
    """The plan and the stage with each number replaced by `get(name, number)`."""
    degrees: dict[str, Any] = {name: get(name, getattr(plan.degrees, name)) for name in OF_DEGREES}
    places: dict[str, Any] = {name: get(name, getattr(stage, name)) for name in OF_STAGE}
    own: dict[str, Any] = {name: get(name, getattr(plan, name)) for name in OF_PLAN}
    completion = own["sequence"] if plan.completion else 0
    return replace(plan, **own, degrees=replace(plan.degrees, **degrees), completion=completion), replace(stage, **places)


def key_of(plan: Plan, stage: Stage, varying: tuple[str, ...]) -> tuple[Plan, Stage]:
    """What plans have in common that differ in their numbers, their card's context and their place in the pipeline alone."""
    words, placed = with_numbers(plan, stage, lambda name, number: 0 if name in varying else number)
    return replace(words, context_bytes=0, node_gpus=plan.node_gpus), replace(placed, number=0)
