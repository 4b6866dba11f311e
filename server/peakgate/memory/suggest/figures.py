"""What plans need that say the same words: the worst rank of each, evaluated together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from peakgate.memory.compose import outside_of
from peakgate.memory.forms import UntraceableError
from peakgate.memory.pipeline import Stage
from peakgate.memory.plan import Plan
from peakgate.memory.suggest.array_program import Integers
from peakgate.memory.suggest.compiled_rank import CompiledRank, Figures, compile_rank
from peakgate.memory.suggest.grid import part_of
from peakgate.memory.suggest.numbers import key_of, varying_of, with_numbers

Numbers = Mapping[str, Integers]
"""The numbers of plans by name, an entry a plan."""

GROUPS = ("data", "tensor", "pipeline", "context", "expert")
"""Degrees that are groups of ranks with buffers of their own (`runtime.groups_of`)."""

KEPT = 384
"""Ranks whose compiled walks are kept; one takes about 0.1 MB."""

VARIANTS = 24
"""Walks of one rank: another way is taken for a batch of one, for two stages, for heads that do not reach …"""

FIGURES = ("allocated", "required", "host")

TOGETHER = 4096
"""Plans that are evaluated at once: their figures stay in the processor's cache."""


def figures_of(plan: Plan, numbers: Numbers) -> Figures:
    """The worst rank's figures of each plan. All of them vary in the same numbers as `plan`, which is one of them.

    Raises UntraceableError where they have to be predicted one by one.
    """
    parts = [_worst(plan, part_of(numbers, slice(at, at + TOGETHER))) for at in range(0, len(numbers["micro_batch"]), TOGETHER)]
    if len(parts) == 1:
        return parts[0]
    return Figures(*(np.concatenate([getattr(part, name) for part in parts]) for name in FIGURES))


def outside_bytes(plan: Plan, numbers: Numbers) -> Integers:
    """What each process takes outside the allocator (`compose.outside_of`): its groups are pairs, or larger ones."""
    groups = [name for name in GROUPS if getattr(plan.degrees, name) > 1]
    pairs, larger = (outside_of(replace(plan, degrees=replace(plan.degrees, **dict.fromkeys(groups, size)))).total for size in (2, 3))
    if pairs == larger:
        return np.full_like(numbers["micro_batch"], pairs)
    return np.where(np.maximum.reduce([numbers[name] for name in groups]) > 2, larger, pairs)


def _worst(plan: Plan, numbers: Numbers) -> Figures:
    """Of stages the one that allocates most; of equal ones the first."""
    worst: Figures | None = None
    for stage, places, chosen in _stages(plan, numbers):
        here = part_of(numbers, chosen) if len(chosen) < len(numbers["micro_batch"]) else dict(numbers)
        found = _of_rank(plan, stage, here | places)
        if worst is None:
            worst = found
            continue
        more = found.allocated > worst.allocated[chosen]
        for name in FIGURES:
            getattr(worst, name)[chosen[more]] = getattr(found, name)[more]
    if worst is None:
        raise AssertionError("a plan has a stage")
    return worst


def _stages(plan: Plan, numbers: Numbers) -> Iterator[tuple[Stage, dict[str, Integers], NDArray[np.intp]]]:
    """(a stage worth walking, its numbers, which plans have it): the first, the second, which holds most of those between, and the last."""
    count, layers = numbers["pipeline"], plan.architecture.dims["L"]
    every = np.arange(len(count))
    if plan.degrees.pipeline == 1:
        yield Stage(number=0, layers=layers, embeds=True, heads=True, in_flight=1, chunks=1), {}, every
        return
    words = Stage(number=0, layers=0, embeds=True, heads=False, in_flight=0, chunks=0)
    yield words, _places(plan, numbers, every, np.zeros_like(count)), every
    between = np.flatnonzero(count > 2)  # some are neither first nor last
    if len(between):
        words = Stage(number=1, layers=0, embeds=False, heads=False, in_flight=0, chunks=0)
        yield words, _places(plan, numbers, between, np.ones_like(count)), between
    yield Stage(number=1, layers=0, embeds=False, heads=True, in_flight=0, chunks=0), _places(plan, numbers, every, count - 1), every


def _places(plan: Plan, numbers: Numbers, chosen: NDArray[np.intp], stage: Integers) -> dict[str, Integers]:
    """`pipeline.stages`, for arrays: layers, micro-batches in flight and chunks of a stage by its number."""
    count, chunks, steps, at = (each[chosen] for each in (numbers["pipeline"], numbers["virtual_pipeline"], numbers["accumulation"], stage))
    layers = plan.architecture.dims["L"]
    if plan.degrees.schedule == "gpipe":
        in_flight = steps * chunks
    else:
        interleaved = np.minimum((count - at - 1) * 2 + (chunks - 1) * count + 1, steps * chunks)
        in_flight = np.where(chunks > 1, interleaved, np.minimum(count - at, steps))
    share, more = layers // count, layers % count
    return {"layers": share + (at < more), "in_flight": in_flight, "chunks": chunks, "start": at * share + np.minimum(at, more)}


def _of_rank(plan: Plan, stage: Stage, numbers: Numbers) -> Figures:
    """The figures of one rank, each plan evaluated by the walk that goes its way."""
    varying = varying_of(plan)
    variants = _variants(*key_of(plan, stage, varying), varying)
    size = len(numbers["micro_batch"])
    out = Figures(*(np.empty(size, dtype=np.int64) for _ in range(3)))
    left = np.arange(size)
    for rank in tuple(variants):
        left = _filled(out, rank, numbers, left)
        if not len(left):
            return out
    while len(left):
        if len(variants) == VARIANTS:
            raise UntraceableError("too many ways through the walk")
        sample = {name: int(values[left[0]]) for name, values in numbers.items()}
        rank = compile_rank(*with_numbers(plan, stage, lambda name, number, own=sample: own.get(name, number)), varying)  # type: ignore[misc]
        variants.append(rank)
        before = len(left)
        left = _filled(out, rank, numbers, left)
        if len(left) == before:
            raise UntraceableError("a walk that does not hold for its own numbers")
    return out


def _filled(out: Figures, rank: CompiledRank, numbers: Numbers, left: NDArray[np.intp]) -> NDArray[np.intp]:
    """Writes down the plans that go a compiled way; those that are left."""
    here = numbers if len(left) == len(out.allocated) else part_of(numbers, left)
    goes = np.broadcast_to(rank.goes(here), len(left))
    done = left if goes.all() else left[goes]
    if len(done):
        found = rank.at(here if len(done) == len(left) else part_of(here, goes))
        everywhere = slice(None) if len(done) == len(out.allocated) else done
        for name in FIGURES:
            getattr(out, name)[everywhere] = getattr(found, name)
    return left[~goes]


@lru_cache(maxsize=KEPT)
def _variants(_plan: Plan, _stage: Stage, _varying: tuple[str, ...]) -> list[CompiledRank]:
    return []


def forget_ranks() -> None:
    """Starts over, as a service that has seen no job."""
    _variants.cache_clear()
