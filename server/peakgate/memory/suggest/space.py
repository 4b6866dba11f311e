"""The space of a search: a job, its levers, and what a choice of them needs and costs for every number that is legal beside it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from peakgate.memory.capacity import capability_of
from peakgate.memory.catalog.gpus import find_gpu
from peakgate.memory.change import value_at, with_changes
from peakgate.memory.check import check, world_of
from peakgate.memory.compose import group_of
from peakgate.memory.forms import UntraceableError
from peakgate.memory.job import Job
from peakgate.memory.lengths import lengths_of
from peakgate.memory.model import Described, describe
from peakgate.memory.not_counted.model import of_description
from peakgate.memory.plan import Plan
from peakgate.memory.predict import predict
from peakgate.memory.prediction import JobError
from peakgate.memory.resolve import resolve
from peakgate.memory.runtime import context_bytes, workspace_bytes
from peakgate.memory.step_time import Card, Sizes, StepTime, card_of, sizes_of, step_time
from peakgate.memory.suggest.array_program import Integers
from peakgate.memory.suggest.figures import figures_of, outside_bytes
from peakgate.memory.suggest.grid import LAYERS, Range, changes_of, entry, grid, part_of, patterns, sequences_of
from peakgate.memory.suggest.levers import Changes, Option, options_of
from peakgate.memory.suggest.numbers import ALWAYS, OF_DEGREES, OF_PLAN
from peakgate.memory.suggest.wanted import LimitOf

STAGES = 3
"""Of a pipeline that are walked: the first, the last, and one between them."""

Floats = NDArray[np.float64]
DECIDING = tuple(name for name in (*OF_PLAN, *OF_DEGREES) if name not in ALWAYS)
"""Numbers whose being above 1 is a word: there is accumulation, or a pipeline."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluated:
    """The plans of a choice of levers, an entry each."""

    chosen: tuple[Option, ...]
    words: Changes
    numbers: dict[str, Integers]
    required: Integers
    """Bytes that a card must have …"""
    over: Integers
    """… and how many of them it has not; negative where it has more."""
    host: Integers
    time: Floats
    """Seconds a sequence over those of the job as it is."""
    fits: NDArray[np.bool_]

    def best(self) -> int | None:
        """The fastest plan that fits, of equally fast ones the first; None without one."""
        places = np.flatnonzero(self.fits)
        return int(places[np.argmin(self.time[places])]) if len(places) else None


@dataclass(slots=True, kw_only=True)
class Space:
    """A job and its levers. `known` are choices that were evaluated before."""

    job: Job
    plan: Plan
    described: Described
    options: list[Option]
    limit_of: LimitOf
    card: Card
    before: StepTime
    undecided: frozenset[str]
    free_batch: bool = False
    larger: bool = False
    """Whether micro-batches may be larger than the job's …"""
    fixed_batch: bool = False
    """… or have to be as large."""
    world: int = 1
    more_gpus: Changes = ()
    """What makes the job one of `world` GPUs, where that is not what it has."""
    known: dict[tuple[int, ...], Evaluated | None] = field(default_factory=dict)
    plans: int = 0
    """How many were evaluated …"""
    effort: int = 0
    """… and how many walks that takes: one for each stage of a group that says the same words, or for each plan that is predicted alone."""

    def evaluate(self, places: tuple[int, ...]) -> Evaluated | None:
        """The plans of the options at `places`; None where there are no legal ones."""
        if places not in self.known:
            self.known[places] = self._evaluated(tuple(self.options[place] for place in places))
        return self.known[places]

    def _evaluated(self, chosen: tuple[Option, ...]) -> Evaluated | None:
        words = tuple(change for option in chosen for change in option.changes)
        worded = self._plan_of((*self.more_gpus, *words))
        if worded is None:
            return None
        degrees = frozenset(each.degree for each in chosen if each.degree)
        larger = self.larger and not self.fixed_batch
        sequences = 0 if self.free_batch else sequences_of(self.plan)
        wanted = Range(degrees=degrees, world=self.world, sequences=sequences, larger=larger, fixed_batch=self.fixed_batch)
        numbers = grid(worded, wanted)
        if any(option.single_step for option in chosen):
            numbers = part_of(numbers, numbers["accumulation"] == 1)
        size = len(numbers["micro_batch"])
        required, over, host = (np.zeros(size, dtype=np.int64) for _ in range(3))
        time = np.ones(size)
        legal = np.zeros(size, dtype=bool)
        for group in patterns(numbers, DECIDING) if size else ():
            part = part_of(numbers, group)
            changes = changes_of(self.job, self.plan, entry(part, 0))
            plan = self._plan_of((*words, *changes)) if changes else worded
            if plan is None:
                continue
            legal[group] = True
            required[group], host[group] = self._figures(plan, words, part)
            over[group] = required[group] - self.limit_of(group_of(plan))
            time[group] = self._time(plan, part)
        if not legal.any():
            return None
        self.plans += int(legal.sum())
        room = self.job.node.host_memory_bytes or 0
        fits = legal & (over <= 0) & ((host <= room) | (room == 0))
        kept = slice(None) if legal.all() else legal
        return Evaluated(
            chosen=chosen,
            words=words,
            numbers=part_of(numbers, kept),
            required=required[kept],
            over=over[kept],
            host=host[kept],
            time=time[kept],
            fits=fits[kept],
        )

    def _plan_of(self, changes: Changes) -> Plan | None:
        """The plan of the changed job; None where it is no legal one, or where more of it is not counted than of the job as it is."""
        try:
            job = with_changes(self.job, changes)
            check(job)
            plan, undecided = plan_of(job, self.described)
        except JobError:
            return None
        return plan if undecided <= self.undecided else None

    def _figures(self, plan: Plan, words: Changes, numbers: dict[str, Integers]) -> tuple[Integers, Integers]:
        """(required, host) bytes of plans that say the same words."""
        try:
            found = figures_of(plan, numbers)
        except UntraceableError:
            return self._one_by_one(words, numbers)
        self.effort += min(plan.degrees.pipeline, STAGES)
        return found.required + outside_bytes(plan, numbers), found.host

    def _one_by_one(self, words: Changes, numbers: dict[str, Integers]) -> tuple[Integers, Integers]:
        size = len(numbers["micro_batch"])
        self.effort += size
        every = [changes_of(self.job, self.plan, entry(numbers, index)) for index in range(size)]
        found = [predict(with_changes(self.job, (*words, *changes))) for changes in every]
        return np.array([each.required_bytes for each in found]), np.array([each.host_bytes for each in found])

    def _time(self, plan: Plan, numbers: dict[str, Integers]) -> Floats:
        sizes = replace(sizes_of(plan), **_varied(numbers))
        seconds: Floats = np.asarray(step_time(plan, sizes, self.card).per_sample / self.before.per_sample, dtype=np.float64)
        return np.broadcast_to(seconds, len(numbers["micro_batch"]))

    def changes(self, found: Evaluated, index: int) -> Changes:
        """What to write into the job for one plan."""
        numbers = changes_of(self.job, self.plan, entry(found.numbers, index))
        return tuple((path, value) for path, value in (*found.words, *numbers) if value_at(self.job, path) != value)


def _varied(numbers: dict[str, Integers]) -> dict[str, Any]:
    """The numbers that differ between plans, as a step time takes them."""
    names = [each.name for each in fields(Sizes) if each.name in numbers]
    return {name: numbers[name].astype(np.float64) for name in names if numbers[name].strides[0]}


def plan_of(job: Job, described: Described) -> tuple[Plan, frozenset[str]]:
    """The plan of a legal job, and what of it is not counted. Raises ValueError for a model without dimensions."""
    if described.architecture is None:
        raise ValueError("a model without dimensions has no plan")
    resolved, capability = resolve(job, described.architecture, world_of(job)), capability_of(job)
    context = context_bytes(job.framework, capability)
    plan = replace(resolved.plan, workspace_bytes=workspace_bytes(capability), context_bytes=context, capability=capability)
    return plan, frozenset((*of_description(plan, described), *resolved.undecided))


def space_of(
    job: Job, limit_of: LimitOf, *, allow: frozenset[str] = frozenset(), keeps: Callable[[str], bool] = lambda _: False, times: int = 1
) -> Space | None:
    """The space of a legal job, on `times` as many GPUs; None where the job does not say enough to walk its step."""
    described = describe(job.model)
    if described.architecture is None or not job.batch.micro_batch_size or not lengths_of(job, described.architecture).sequence:
        return None
    plan, undecided = plan_of(job, described)
    card = card_of(find_gpu(job.gpu.type) if job.gpu.type else None)
    world = plan.degrees.world * times
    more_gpus: Changes = (("parallelism.world_size", world), ("gpu.count", world)) if times > 1 else ()
    wide = with_changes(job, more_gpus)
    options = [each for each in options_of(wide, plan_of(wide, described)[0]) if is_wanted(each, allow, keeps)]
    return Space(
        job=job,
        plan=plan,
        described=described,
        options=options,
        limit_of=limit_of,
        card=card,
        before=step_time(plan, sizes_of(plan), card),
        undecided=undecided,
        free_batch="batch" in allow,
        fixed_batch=keeps("batch.micro_batch_size") or keeps("batch.gradient_accumulation_steps"),
        world=world,
        more_gpus=more_gpus,
    )


def is_wanted(option: Option, allow: frozenset[str], keeps: Callable[[str], bool]) -> bool:
    """Whether an option alters only what it may, and no field that must stay."""
    number = "checkpointing.layers" if option.degree == LAYERS else f"parallelism.{option.degree}"
    paths = [path for path, _ in option.changes] + ([number] if option.degree else [])
    return (not option.alters or option.alters in allow) and not any(keeps(path) for path in paths)
