"""The figures of one rank for many plans: by compiled walks, or by plain ones where there are few."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from peakgate.memory.forms import UntraceableError
from peakgate.memory.pipeline import Stage
from peakgate.memory.plan import Plan
from peakgate.memory.suggest.array_program import Integers
from peakgate.memory.suggest.compiled_rank import CompiledRank, Figures, compile_rank
from peakgate.memory.suggest.grid import Numbers, part_of
from peakgate.memory.suggest.numbers import key_of, varying_of, with_numbers
from peakgate.memory.suggest.walked_rank import walked_rank

KEPT = 384
"""Ranks whose compiled walks are kept; one takes about 0.1 MB."""

MOST_WALKS = 6
"""Plans of a rank that are walked one by one before it is compiled, which costs about as much as four of them."""

VARIANTS = 24
"""Walks of one rank: another way is taken for a batch of one, for two stages, for heads that do not reach …"""

FIGURES = ("allocated", "required", "host")

TOGETHER = 8192
"""Plans that are evaluated at once: their figures stay in the processor's caches."""

SHORT = 512
"""Plans of a stretch that is not worth an evaluation of its own."""

KEPT_BYTES = 16 << 20
"""Of a batch's arrays. glibc gives blocks from its threshold on back to the system at once, to fetch them again page by page; the threshold
grows to the largest block that was ever given back (mallopt(3), M_MMAP_THRESHOLD), which is the one below."""

np.empty(KEPT_BYTES, dtype=np.uint8)


def of_rank(plan: Plan, stage: Stage, numbers: Numbers) -> Figures:
    """The figures of one rank."""
    varying = varying_of(plan)
    known = _known(*key_of(plan, stage, varying), varying)
    out = Figures(*(np.empty(len(numbers["micro_batch"]), dtype=np.int64) for _ in range(3)))
    for run in _runs(numbers["tensor"]):
        here = part_of(numbers, run)
        if (here["tensor"] == here["tensor"][:1]).all():
            here["tensor"] = np.broadcast_to(here["tensor"][:1], len(here["tensor"]))
        _fill(plan, stage, known, here, Figures(*(getattr(out, name)[run] for name in FIGURES)))
    return out


def _runs(column: Integers) -> list[slice]:
    """Stretches with the same number of a column, where they are long: what depends on that number alone is then computed once."""
    ends = [*(np.flatnonzero(np.diff(column)) + 1).tolist(), len(column)]
    if len(ends) * SHORT > len(column):
        return [slice(0, len(column))]
    return [slice(start, end) for start, end in pairwise([0, *ends])]


def _fill(plan: Plan, stage: Stage, known: _Known, numbers: Numbers, out: Figures) -> None:
    """Writes down the figures of plans, each by the walk that goes its way; walks that are not known are compiled, or done for few."""
    left = np.arange(len(out.allocated))
    for rank in tuple(known.variants):
        left = _filled(out, rank, numbers, left)
        if not len(left):
            return
    if len(left) <= MOST_WALKS:
        left = _walked(plan, stage, known, numbers, out, left)
    while len(left):
        if len(known.variants) == VARIANTS:
            raise UntraceableError("too many ways through the walk")
        rank = compile_rank(*_placed(plan, stage, numbers, left[0]), varying_of(plan))
        known.variants.append(rank)
        before = len(left)
        left = _filled(out, rank, numbers, left)
        if len(left) == before:
            raise UntraceableError("a walk that does not hold for its own numbers")


def _walked(plan: Plan, stage: Stage, known: _Known, numbers: Numbers, out: Figures, left: NDArray[np.intp]) -> NDArray[np.intp]:
    """Walks a few plans one by one, until a compiled walk would have been cheaper; those that are left."""
    for done, index in enumerate(left):
        here = tuple(int(values[index]) for values in numbers.values())
        if here not in known.walked:
            if len(known.walked) == MOST_WALKS:
                return left[done:]
            known.walked[here] = walked_rank(*_placed(plan, stage, numbers, index))
        for name, size in zip(FIGURES, known.walked[here], strict=True):
            getattr(out, name)[index] = size
    return left[:0]


def _placed(plan: Plan, stage: Stage, numbers: Numbers, index: np.intp) -> tuple[Plan, Stage]:
    """One plan and stage with their own numbers."""
    own = {name: int(values[index]) for name, values in numbers.items()}
    return with_numbers(plan, stage, own.get)


def _filled(out: Figures, rank: CompiledRank, numbers: Numbers, left: NDArray[np.intp]) -> NDArray[np.intp]:
    """Writes down the plans that go a compiled way; those that are left."""
    whole = len(left) == len(out.allocated)
    here = numbers if whole else part_of(numbers, left)
    goes = rank.goes(here)
    if not goes.all():
        goes = np.broadcast_to(goes, len(left))
        here, whole = part_of(here, goes), False
    done = left[goes] if len(goes) == len(left) else left
    for at in range(0, len(done), TOGETHER):
        some = slice(at, at + TOGETHER)
        found = rank.at(part_of(here, some))
        for name in FIGURES:
            getattr(out, name)[some if whole else done[some]] = getattr(found, name)
    return left[~goes] if len(goes) == len(left) else left[:0]


@dataclass(slots=True)
class _Known:
    """What is known of a rank: its compiled walks, and the figures of plans that were walked one by one."""

    variants: list[CompiledRank] = field(default_factory=list)
    walked: dict[tuple[int, ...], tuple[int, int, int]] = field(default_factory=dict)


@lru_cache(maxsize=KEPT)
def _known(_plan: Plan, _stage: Stage, _varying: tuple[str, ...]) -> _Known:
    return _Known()


def forget_ranks() -> None:
    """Starts over, as a service that has seen no job."""
    _known.cache_clear()
