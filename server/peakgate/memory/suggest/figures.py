"""What plans need that say the same words: the worst rank of each, evaluated together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from peakgate.memory.compose import outside_of
from peakgate.memory.forms import UntraceableError
from peakgate.memory.pipeline import Stage
from peakgate.memory.plan import Plan
from peakgate.memory.suggest.array_program import Integers
from peakgate.memory.suggest.compiled_rank import Figures, is_compilable
from peakgate.memory.suggest.grid import Numbers, part_of
from peakgate.memory.suggest.rank_figures import FIGURES, of_rank

GROUPS = ("data", "tensor", "pipeline", "context", "expert")
"""Degrees that are groups of ranks with buffers of their own (`runtime.groups_of`)."""


def figures_of(plan: Plan, numbers: Numbers) -> Figures:
    """The figures of each plan's worst rank: of stages the one that allocates most, of equal ones the first.

    All of them vary in the same numbers as `plan`, which is one of them.
    Raises UntraceableError where they have to be predicted one by one.
    """
    if not is_compilable(plan):
        raise UntraceableError("a plan that is predicted one by one")
    worst: Figures | None = None
    for stage, places, chosen in _stages(plan, numbers):
        here = numbers if len(chosen) == len(numbers["micro_batch"]) else part_of(numbers, chosen)
        found = of_rank(plan, stage, {**here, **places})
        if worst is None:
            worst = found
            continue
        more = found.allocated > worst.allocated[chosen]
        for name in FIGURES:
            getattr(worst, name)[chosen[more]] = getattr(found, name)[more]
    if worst is None:
        raise AssertionError("a plan has a stage")
    return worst


def outside_bytes(plan: Plan, numbers: Numbers) -> Integers:
    """What each process takes outside the allocator (`compose.outside_of`): its groups are pairs, or larger ones."""
    groups = [name for name in GROUPS if getattr(plan.degrees, name) > 1]
    sized: list[dict[str, Any]] = [dict.fromkeys(groups, size) for size in (2, 3)]
    pairs, larger = (outside_of(replace(plan, degrees=replace(plan.degrees, **each))).total for each in sized)
    if pairs == larger:
        return np.full_like(numbers["micro_batch"], pairs)
    return np.where(np.maximum.reduce([numbers[name] for name in groups]) > 2, larger, pairs)


def _stages(plan: Plan, numbers: Numbers) -> Iterator[tuple[Stage, dict[str, Integers], NDArray[np.intp]]]:
    """(a stage worth walking, its numbers, which plans have it): the first, the second, which holds most of those between, and the last."""
    count, layers = numbers["pipeline"], plan.architecture.dims["L"]
    every = np.arange(len(count))
    if plan.degrees.pipeline == 1:
        yield Stage(number=0, layers=layers, embeds=True, heads=True, in_flight=1, chunks=1), {}, every
        return
    first = Stage(number=0, layers=0, embeds=True, heads=False, in_flight=0, chunks=0)
    yield first, _places(plan, numbers, np.zeros_like(count)), every
    between = np.flatnonzero(count > 2)  # some are neither first nor last
    if len(between):
        here = part_of(numbers, between)
        yield replace(first, number=1, embeds=False), _places(plan, here, np.ones_like(here["pipeline"])), between
    yield replace(first, number=1, embeds=False, heads=True), _places(plan, numbers, count - 1), every


def _places(plan: Plan, numbers: Numbers, stage: Integers) -> dict[str, Integers]:
    """`pipeline.stages`, for arrays: layers, micro-batches in flight and chunks of a stage by its number."""
    count, chunks, steps = numbers["pipeline"], numbers["virtual_pipeline"], numbers["accumulation"]
    layers = plan.architecture.dims["L"]
    if plan.degrees.schedule == "gpipe":
        in_flight = steps * chunks
    else:
        in_flight = np.minimum(count - stage, steps)
        if plan.degrees.virtual_pipeline > 1:
            interleaved = np.minimum((count - stage - 1) * 2 + (chunks - 1) * count + 1, steps * chunks)
            in_flight = np.where(chunks > 1, interleaved, in_flight)
    share, more = layers // count, layers % count
    return {"layers": share + (stage < more), "in_flight": in_flight, "chunks": chunks, "start": stage * share + np.minimum(stage, more)}
