"""What to change of a job: the entry to the plan search."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from peakgate.memory.job import Job
from peakgate.memory.prediction import Change
from peakgate.memory.suggest.front import front
from peakgate.memory.suggest.levers import FASTER, options_of
from peakgate.memory.suggest.search import Found, found_at, search
from peakgate.memory.suggest.space import Space, is_wanted, space_of
from peakgate.memory.suggest.wanted import LimitOf, Plans, Wanted
from peakgate.memory.suggest.wording import change_of

QUICK, THOROUGH = 16, 240
"""What a search may cost, in walks (`Space.effort`): unasked, beside a verdict, and when suggestions are asked for."""

ROOM = 0.9
"""A job that fits is told what needs at most this share of what it needs now."""

FASTER_BELOW = 0.98
"""A plan is faster from here on: below that the costs are not exact enough to tell."""

MORE_GPUS = (2, 4, 8, 16)
"""Times as many GPUs, tried when what the job has gives too few plans."""

ENOUGH = 3
"""Plans on the job's own GPUs, beside which none on more GPUs are wanted."""


def plans_of(job: Job, limit_of: LimitOf, wanted: Wanted) -> Plans:
    """The plans for a legal job on its card. Raises JobError for a job that cannot be judged."""
    space = space_of(job, limit_of, allow=wanted.allow, keeps=wanted.keeps)
    if space is None:
        return Plans()
    effort = THOROUGH if wanted.thorough else QUICK
    own, closest = space.evaluate(()), None
    if own is not None and own.fits[0]:
        found = _for_one_that_fits(space, int(own.required[0]), wanted, effort)
    else:
        result = search(space, most=wanted.most, effort=effort)
        found = [change_of(space, each) for each in result.found]
        closest = result.closest if not found else None
        if len(found) < ENOUGH and wanted.thorough:
            found += _on_more_gpus(job, limit_of, wanted, effort)
    return Plans(
        suggestions=tuple(found[: wanted.most]),
        closest=change_of(space, closest) if closest is not None else None,
        front=tuple(change_of(space, each) for each in front(space, effort)) if wanted.front else (),
        considered=space.plans,
    )


def _for_one_that_fits(space: Space, required_bytes: int, wanted: Wanted, effort: int) -> list[Change]:
    """What is faster and still fits, then what needs less."""
    faster = sorted(_faster(space, wanted), key=lambda each: each.rank)[: wanted.most // 2]
    roomier = replace(space, limit_of=lambda group: min(space.limit_of(group), int(ROOM * required_bytes)), known={})
    result = search(roomier, most=wanted.most, effort=effort)
    known = [each.changes for each in faster]
    return [change_of(space, each) for each in (*faster, *(each for each in result.found if each.changes not in known))]


def _faster(space: Space, wanted: Wanted) -> Iterator[Found]:
    """Single changes that save time: larger micro-batches, and what the job may leave away."""
    options = [each for each in options_of(space.job, space.plan, FASTER) if is_wanted(each, wanted.allow, wanted.keeps)]
    wide = replace(space, options=options, known={}, larger=True)
    for node in [(), *((place,) for place in range(len(options)))]:
        evaluated = wide.evaluate(node)
        index = evaluated.best() if evaluated is not None else None
        if evaluated is not None and index is not None and evaluated.time[index] < FASTER_BELOW:
            yield found_at(wide, evaluated, index)


def _on_more_gpus(job: Job, limit_of: LimitOf, wanted: Wanted, effort: int) -> Iterator[Change]:
    """The best plan on the fewest GPUs above the job's own."""
    if wanted.keeps("gpu.count") or wanted.keeps("parallelism.world_size"):
        return
    for times in MORE_GPUS:
        space = space_of(job, limit_of, allow=wanted.allow, keeps=wanted.keeps, times=times)
        result = search(space, most=1, effort=effort // len(MORE_GPUS)) if space is not None else None
        if space is not None and result is not None and result.found:
            yield change_of(space, result.found[0])
            return
