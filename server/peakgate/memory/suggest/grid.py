"""The numbers that a search may give a plan: micro-batches and degrees at a constant global batch.

Only what a framework can run: degrees multiply to the GPUs, tensor parallelism stays inside a node and divides the heads, stages of
Megatron-LM have equal layers, context parallelism cuts a sequence into two parts a rank (its load is balanced so: Megatron-LM
arguments.py, seq_length % (2 * context_parallel_size)).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isqrt, prod

import numpy as np
from numpy.typing import NDArray

from peakgate.memory.job import Job
from peakgate.memory.plan import SHARDED, Degrees, Plan
from peakgate.memory.routed import expert_shard
from peakgate.memory.suggest.array_program import Integers

DEGREES = ("tensor", "pipeline", "context", "expert")

Numbers = Mapping[str, Integers]
"""The numbers of plans by name, an entry a plan."""

Chosen = slice | NDArray[np.intp] | NDArray[np.bool_]

LAYERS = "checkpoint_layers"
"""Of each stage the first so many are checkpointed: a quarter, a half or three quarters of them."""

QUARTERS = 4

FEWEST_LAYERS = 2
"""One layer is not worth a word, and a number above 1 is a word (`patterns`)."""

EQUAL_STAGES = ("megatron", "textbook")
"""Frameworks whose stages have equally many layers (Megatron-LM core/transformer/transformer_config.py)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """What may vary: `degrees` that take another value than the job's, by name; `world`, the GPUs; `sequences` of the global batch, 0 where
    it is free; micro-batches may also be `larger` than the job's, or may not differ from it at all."""

    degrees: frozenset[str] = frozenset()
    world: int = 1
    sequences: int = 0
    larger: bool = False
    fixed_batch: bool = False


def sequences_of(plan: Plan) -> int:
    """Of the global batch."""
    return plan.micro_batch * plan.accumulation * plan.degrees.data


def grid(plan: Plan, wanted: Range) -> dict[str, Integers]:
    """The numbers of every legal plan in a range, an entry each; of each tensor parallel degree the job's own micro-batch first."""
    own = plan.degrees
    values = {name: _degrees(plan, name, wanted.world) if name in wanted.degrees else [getattr(own, name)] for name in DEGREES}
    most = plan.micro_batch * (plan.accumulation if wanted.larger else 1)
    divisors = [each for each in _divisors(most) if each % plan.sequences == 0 and (each == plan.micro_batch or not wanted.fixed_batch)]
    sizes = sorted(divisors, key=lambda each: (each != plan.micro_batch, -each))
    quarters = [1, 2, 3] if LAYERS in wanted.degrees else [0]
    numbers = _product({"tensor": values.pop("tensor"), "micro_batch": sizes, "quarters": quarters, **values})
    quarter = numbers.pop("quarters")
    layers = plan.architecture.dims["L"] // numbers["pipeline"] * quarter // QUARTERS if LAYERS in wanted.degrees else None
    numbers[LAYERS] = layers if layers is not None else _same(plan.checkpoint_layers, len(quarter))
    return _completed(plan, numbers, wanted)


def _product(values: Mapping[str, Sequence[int]]) -> dict[str, Integers]:
    """Every combination, the last name's values fastest."""
    shape = [len(each) for each in values.values()]
    columns: dict[str, Integers] = {}
    for place, (name, each) in enumerate(values.items()):
        if len(each) == 1:
            columns[name] = _same(each[0], prod(shape))
        else:
            columns[name] = np.tile(np.repeat(np.array(each, dtype=np.int64), prod(shape[place + 1 :])), prod(shape[:place]))
    return columns


def _same(number: int, size: int) -> Integers:
    """One number for all plans: a column without a stride, which nothing needs to compute with more than once."""
    return np.broadcast_to(np.array([number], dtype=np.int64), size)


def _completed(plan: Plan, numbers: dict[str, Integers], wanted: Range) -> dict[str, Integers]:
    """With what follows from micro-batch and degrees, and without what is not legal."""
    own, world, size = plan.degrees, wanted.world, len(numbers["micro_batch"])
    ranks = numbers["pipeline"] * numbers["tensor"] * numbers["context"]
    data = np.maximum(1, world // ranks)
    together = numbers["micro_batch"] * data
    accumulation = wanted.sequences // together if wanted.sequences else _same(plan.accumulation, size)
    legal = (ranks * data == world) & (accumulation > 0) & (not wanted.sequences or accumulation * together == wanted.sequences)
    if LAYERS in wanted.degrees:
        legal &= numbers[LAYERS] >= FEWEST_LAYERS
    common = {name: _same(number, size) for name, number in _common(plan, world).items()}
    sharing = data * numbers["context"]
    shard = _shard(plan, sharing)
    out = numbers | common | {"accumulation": accumulation, "data": data, "shard": shard}
    if own.virtual_pipeline > 1:
        out["virtual_pipeline"] = np.where(_interleaves(plan, numbers, accumulation), own.virtual_pipeline, 1)
    if shard is not sharing:
        legal &= sharing % shard == 0
    if (numbers["expert"] == 1).all():
        return part_of(out | {"expert_shard": _same(0, size)}, legal)
    kept = part_of(out, legal & (sharing * numbers["tensor"] % numbers["expert"] == 0))
    return kept | {"expert_shard": _expert_shard(own, kept)}


def _interleaves(plan: Plan, numbers: Mapping[str, Integers], accumulation: Integers) -> NDArray[np.bool_]:
    """Whether the job's chunks a stage go with another number of stages (Megatron-LM: layers and micro-batches divide)."""
    own, stages = plan.degrees, numbers["pipeline"]
    divides = (plan.architecture.dims["L"] % (stages * own.virtual_pipeline) == 0) & (accumulation % stages == 0) & (stages > 1)
    interleaves: NDArray[np.bool_] = (stages == own.pipeline) | divides
    return interleaves


def _common(plan: Plan, world: int) -> dict[str, int]:
    """The numbers that are the same in every plan."""
    return {
        "sequence": plan.sequence,
        "target": plan.target,
        "world": world,
        "virtual_pipeline": 1,
    }


def _degrees(plan: Plan, name: str, world: int) -> list[int]:
    """Other values than the job's that a degree may take."""
    arch, own = plan.architecture, getattr(plan.degrees, name)
    most = {"tensor": min(plan.node_gpus, world), "pipeline": min(arch.dims["L"], world), "context": world, "expert": arch.dims["E"]}
    return [each for each in _powers(most[name]) if each != own and world % each == 0 and _divides(plan, name, each)]


def _divides(plan: Plan, name: str, degree: int) -> bool:
    dims = plan.architecture.dims
    if name == "tensor":
        return dims["a"] % degree == 0
    if name == "pipeline":
        return plan.framework not in EQUAL_STAGES or dims["L"] % degree == 0
    if name == "context":
        return degree == 1 or plan.sequence % (2 * degree) == 0
    return dims["E"] % degree == 0


def _powers(most: int) -> list[int]:
    return [1 << power for power in range(max(1, most).bit_length()) if 1 << power <= most]


def _divisors(number: int) -> list[int]:
    small = [each for each in range(1, isqrt(number) + 1) if number % each == 0]
    return sorted({*small, *(number // each for each in small)})


def _shard(plan: Plan, ranks: Integers) -> Integers:
    """Ranks that share states: all of them, or as many of them as the job's own shards."""
    own = plan.degrees
    if own.sharding not in SHARDED or own.shard == own.data * own.context:
        return ranks
    return np.minimum(ranks, own.shard)


def _expert_shard(own: Degrees, numbers: Mapping[str, Integers]) -> Integers:
    """`routed.expert_shard` of each; degrees come in few combinations."""
    names = ("world", "shard", "tensor", "pipeline", "expert")
    keys = list(zip(*(numbers[name].tolist() for name in names), strict=True))
    known = {key: expert_shard(replace(own, **dict(zip(names, key, strict=True)))) if key[-1] > 1 else 0 for key in set(keys)}
    return np.array([known[key] for key in keys], dtype=np.int64)


def changes_of(job: Job, plan: Plan, numbers: Mapping[str, int]) -> tuple[tuple[str, int | bool], ...]:
    """What to write into the job for numbers of the grid: only what differs from what it comes to now."""
    own = plan.degrees
    changes: list[tuple[str, int | bool]] = []
    if numbers["micro_batch"] != plan.micro_batch:
        changes.append(("batch.micro_batch_size", numbers["micro_batch"] // plan.sequences))
    if numbers["accumulation"] != plan.accumulation:
        changes.append(("batch.gradient_accumulation_steps", numbers["accumulation"]))
    changes += [(f"parallelism.{name}", numbers[name]) for name in DEGREES if numbers[name] != getattr(own, name)]
    if numbers["tensor"] > 1 and own.tensor == 1:
        changes.append(("parallelism.sequence_parallel", True))
    if numbers[LAYERS] != plan.checkpoint_layers:
        changes.append(("checkpointing.layers", numbers[LAYERS]))
    if numbers["virtual_pipeline"] != own.virtual_pipeline:
        changes.append(("parallelism.virtual_pipeline", numbers["virtual_pipeline"]))
    if job.parallelism.shard_degree and numbers["shard"] != job.parallelism.shard_degree:
        changes.append(("parallelism.shard_degree", numbers["shard"]))
    if numbers["world"] != own.world:
        changes += [("parallelism.world_size", numbers["world"]), ("gpu.count", numbers["world"])]
    return tuple(changes)


def entry(numbers: Mapping[str, Integers], index: int) -> dict[str, int]:
    """One plan's numbers."""
    return {name: int(values[index]) for name, values in numbers.items()}


def part_of(numbers: Mapping[str, Integers], chosen: Chosen) -> dict[str, Integers]:
    """The numbers of some plans; those that are the same for all stay one number (a column without a stride)."""
    varied = {name: values[chosen] for name, values in numbers.items() if values.strides[0]}
    size = len(next(iter(varied.values()), numbers["micro_batch"][chosen]))
    return {name: varied[name] if name in varied else values[:size] for name, values in numbers.items()}


def patterns(numbers: Mapping[str, Integers], names: Sequence[str]) -> list[NDArray[np.intp]]:
    """Plans that have the same numbers above 1, which is what words depend on, together."""
    marks = np.zeros(len(numbers["micro_batch"]), dtype=np.int64)
    for place, name in enumerate(names):
        if numbers[name].strides[0]:
            marks |= (numbers[name] > 1).astype(np.int64) << place
    return [np.flatnonzero(marks == each) for each in np.flatnonzero(np.bincount(marks))]
