"""Changes that make a job fit: the plans that the memory model finds, each predicted again on the whole path before it is shown. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache, partial

from peakgate.memory.choices import ALLOWABLE
from peakgate.memory.job import Job
from peakgate.memory.prediction import Change, LedgerLine
from peakgate.memory.suggest.wanted import LimitOf, Wanted
from peakgate.server.assess import Assessment, Assessor
from peakgate.server.cards import smallest_gpu
from peakgate.server.decide import retries
from peakgate.server.memory import Changes
from peakgate.server.wishes import NO_WISHES, Wishes

NOT_ESTIMATED = 0.0
"""Relative step time of a change whose cost is not known."""

UNASKED, ASKED = 5, 8
"""Plans beside a verdict, and when suggestions are asked for."""

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
    headroom_bytes: int
    fits: bool
    relative_step_time: float
    why: str
    alters: str = ""
    conditions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortfall:
    """What the plan that comes nearest is short of, and the largest line of its ledger."""

    bytes: int
    largest: LedgerLine
    closest: Advice


@dataclass(frozen=True, slots=True, kw_only=True)
class Counsel:
    """`advice`, best first; `shortfall` where nothing fits; the `front` of memory against time; `notes` on what would help if it were
    allowed; how many plans were looked at."""

    advice: tuple[Advice, ...] = ()
    shortfall: Shortfall | None = None
    front: tuple[Advice, ...] = ()
    notes: tuple[str, ...] = ()
    plans: int = 0


def advise(
    job: Job,
    assessment: Assessment,
    assessor: Assessor,
    deciding: Changes = (),
    *,
    wishes: Wishes = NO_WISHES,
    thorough: bool = False,
) -> Counsel:
    """The cheapest plans that fit, what costs nothing first.

    `deciding` are unstated fields with the values that make the job fit: to state them comes before every change. `thorough`: when
    suggestions are asked for, a wider search, with more GPUs and another one where the job's own do not do.
    """
    if assessment.capacity is None and not wishes.pareto:
        return Counsel()  # without a card nothing fits or does not
    limit_of = cache(partial(assessor.largest_requirement, job=job, like=assessment.subject, usable_bytes=assessment.usable_bytes))
    most = ASKED if thorough else UNASKED
    wanted = Wanted(allow=wishes.allow, keeps=wishes.keeps, most=most, thorough=thorough, front=wishes.pareto)
    plans = assessor.memory.plans(job, limit_of, wanted)
    own = [each for each in _own(assessment, deciding, plans.suggestions) if not any(wishes.keeps(path) for path, _ in each.changes)]
    known = [sorted(each.changes) for each in own]
    changes = [*own, *(each for each in plans.suggestions if sorted(each.changes) not in known)]
    advice = [each for each in (_advice(job, change, assessor) for change in changes) if each is not None]
    fitting = [each for each in advice if each.fits]
    shortfall = _shortfall(job, plans.closest, assessor) if plans.closest is not None and not own else None
    notes = _what_more_helps(job, limit_of, wanted, assessor) if thorough and shortfall is not None else ()
    if thorough and not fitting and not assessment.fits and not wishes.keeps("gpu.type"):
        fitting += _another_card(job, assessor)
    front = tuple(each for each in (_advice(job, change, assessor) for change in plans.front) if each is not None)
    rest = [each for each in advice if not each.fits]
    return Counsel(advice=(*fitting, *rest), shortfall=shortfall, front=front, notes=notes, plans=plans.considered)


def _what_more_helps(job: Job, limit_of: LimitOf, wanted: Wanted, assessor: Assessor) -> tuple[str, ...]:
    """What may be altered so that the job fits, where nothing else makes it."""
    notes = []
    for word in (word for word in ALLOWABLE if word not in wanted.allow):
        plans = assessor.memory.plans(job, limit_of, replace(wanted, allow=wanted.allow | {word}, thorough=False, front=False))
        if any(word in each.alters.split() for each in plans.suggestions):
            notes.append(f"with `--allow {word}` there are plans that fit")
    return tuple(notes)


def _own(assessment: Assessment, deciding: Changes, found: Iterable[Change]) -> Iterator[Change]:
    """What decides, with the cost that a search `found` for it, and what the service itself knows to help."""
    if deciding:
        same = next((each for each in found if sorted(each.changes) == sorted(deciding)), None)
        yield _statement(deciding, same.relative_step_time if same is not None else NOT_ESTIMATED)
    if retries(assessment):
        yield EXPANDABLE_SEGMENTS
    if not assessment.host_fits and "optimizer_states" in assessment.offloaded:
        yield NO_OFFLOAD


def _statement(deciding: Changes, relative_step_time: float) -> Change:
    names = " and ".join(path for path, _ in deciding)
    return Change(
        title=f"state {names}, if that is what the job does",
        changes=deciding,
        relative_step_time=relative_step_time,
        why="the job does not say it, and with these values it fits; if it does something else, this is the change",
    )


def _advice(job: Job, change: Change, assessor: Assessor) -> Advice | None:
    changed = assessor.changed(job, change.changes)
    if changed is None:
        return None
    return Advice(
        title=change.title,
        changes=change.changes,
        bound_bytes=changed.bound_bytes,
        headroom_bytes=changed.usable_bytes - changed.bound_bytes if changed.capacity is not None else 0,
        fits=changed.fits,
        relative_step_time=change.relative_step_time,
        why=change.why,
        alters=change.alters,
        conditions=change.conditions,
    )


def _another_card(job: Job, assessor: Assessor) -> Iterator[Advice]:
    """The smallest card of the catalogue on which the job fits as it is."""
    name = smallest_gpu(job, assessor, whole=True)
    unset: Changes = (("gpu.memory_bytes", 0),) if job.gpu.memory_bytes else ()
    change = Change(
        title=f"another GPU: {name}",
        changes=(("gpu.type", name), *unset),
        relative_step_time=NOT_ESTIMATED,
        why="the job as it is, on the smallest card that holds it",
        alters="gpus",
    )
    found = _advice(job, change, assessor) if name else None
    if found is not None:
        yield found


def _shortfall(job: Job, closest: Change, assessor: Assessor) -> Shortfall | None:
    advice, changed = _advice(job, closest, assessor), assessor.changed(job, closest.changes)
    if advice is None or changed is None or not changed.prediction.ledger or advice.headroom_bytes >= 0:
        return None
    return Shortfall(bytes=-advice.headroom_bytes, largest=max(changed.prediction.ledger, key=lambda line: line.bytes), closest=advice)
