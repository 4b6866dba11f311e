"""Changes that make a job fit: the memory model's list, each change computed. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from peakgate.memory.job import Job
from peakgate.memory.prediction import Change
from peakgate.server.assess import Assessment, Assessor
from peakgate.server.decide import retries
from peakgate.server.memory import Changes

NOT_ESTIMATED = 0.0
"""Relative step time of a change whose cost is not known."""

EXPANDABLE_SEGMENTS = Change(
    title="expandable segments of the caching allocator",
    changes=(("framework.expandable_segments", True),),
    relative_step_time=1.0,
    why="segments that grow leave fewer gaps, so the allocator need not free its cache and retry; set by PYTORCH_CUDA_ALLOC_CONF",
)


NO_OFFLOAD = Change(
    title="optimizer states stay on the GPU",
    changes=(("offload.optimizer", "none"),),
    relative_step_time=NOT_ESTIMATED,
    why="a node has too little RAM for what is offloaded; without offload nothing waits for transfers either",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """A change and what it brings."""

    title: str
    changes: Changes
    bound_bytes: int
    fits: bool
    relative_step_time: float
    why: str


def advise(job: Job, assessment: Assessment, assessor: Assessor, deciding: Changes = ()) -> tuple[Advice, ...]:
    """Legal changes, those that fit first and otherwise in the list's order, which is the order of their cost.

    `deciding` are unstated fields with the values that make the job fit: to state them comes before every change. When no single
    change is enough, changes are added up in their order until the job fits, and the sum comes first.
    """
    changes = tuple(_listed(job, assessment, assessor, deciding))
    advice = [each for each in (_advice(job, change, assessor) for change in changes) if each is not None]
    if assessment.decided and not assessment.fits and not any(each.fits for each in advice):
        advice += _together(job, assessment, changes, assessor)
    return (*(each for each in advice if each.fits), *(each for each in advice if not each.fits))


def _listed(job: Job, assessment: Assessment, assessor: Assessor, deciding: Changes) -> Iterator[Change]:
    """What decides, what the service itself knows to help, and the memory model's list; each set of changes once."""
    fixes = assessor.memory.fixes(job)
    known = next((each for each in fixes if sorted(each.changes) == sorted(deciding)), None)
    own: tuple[Change, ...] = (known or _statement(deciding),) if deciding else ()
    if retries(assessment):
        own += (EXPANDABLE_SEGMENTS,)
    if not assessment.host_fits and "optimizer_states" in assessment.offloaded:
        own += (NO_OFFLOAD,)
    yield from own
    taken = [sorted(each.changes) for each in own]
    yield from (each for each in fixes if sorted(each.changes) not in taken)


def _statement(deciding: Changes) -> Change:
    names = " and ".join(path for path, _ in deciding)
    return Change(
        title=f"state {names}, if that is what the job does",
        changes=deciding,
        relative_step_time=NOT_ESTIMATED,
        why="the job does not say it, and with these values it fits",
    )


def _advice(job: Job, change: Change, assessor: Assessor) -> Advice | None:
    changed = assessor.changed(job, change.changes)
    if changed is None:
        return None
    return Advice(
        title=change.title,
        changes=change.changes,
        bound_bytes=changed.bound_bytes,
        fits=changed.fits,
        relative_step_time=change.relative_step_time,
        why=change.why,
    )


def _together(job: Job, assessment: Assessment, changes: tuple[Change, ...], assessor: Assessor) -> list[Advice]:
    """The changes that help beside the earlier ones, up to the first sum that fits; nothing when all of them do not.

    A change replaces the earlier ones that set one of its fields to another value.
    """
    taken: list[Change] = []
    best_bytes = assessment.bound_bytes
    for change in changes:
        parts = [*(part for part in taken if not _contradict(part, change)), change]
        attempt = _advice(job, _sum(parts), assessor)
        if attempt is None or attempt.bound_bytes >= best_bytes:
            continue
        taken = parts
        best_bytes = attempt.bound_bytes
        if attempt.fits:
            return [_fewest(job, taken, attempt, assessor)]
    return []


def _contradict(one: Change, other: Change) -> bool:
    values = dict(one.changes)
    return any(values.get(path, value) != value for path, value in other.changes)


def _fewest(job: Job, parts: list[Change], sum_of_parts: Advice, assessor: Assessor) -> Advice:
    """The sum without the parts that are not needed, of which the costliest is tried first; the cost of some is not estimated."""
    costliest = sorted(parts, key=lambda part: part.relative_step_time or math.inf, reverse=True)
    for part in costliest:
        rest = [each for each in parts if each is not part]
        attempt = _advice(job, _sum(rest), assessor) if rest else None
        if attempt is not None and attempt.fits:
            parts, sum_of_parts = rest, attempt
    return sum_of_parts


def _sum(parts: list[Change]) -> Change:
    if len(parts) == 1:
        return parts[0]
    changes = {path: value for part in parts for path, value in part.changes}
    step_time = 1.0  # NOT_ESTIMATED when that of a part is
    for part in parts:
        step_time *= part.relative_step_time
    return Change(
        title=" + ".join(part.title for part in parts),
        changes=tuple(changes.items()),
        relative_step_time=step_time,
        why="no single change is enough; these are the cheapest that are enough together",
    )
