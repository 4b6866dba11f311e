"""Changes that make a job fit: the memory model's list, each change computed, and inversions of single fields. Pure."""

from __future__ import annotations

import dataclasses
import math
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Union, get_args, get_origin, get_type_hints

from peakgate.memory.job import Job
from peakgate.memory.prediction import Change
from peakgate.server.assess import Assessment, Assessor
from peakgate.server.decide import retries
from peakgate.server.errors import PeakgateError, field_error
from peakgate.server.memory import Changes

LARGEST_VALUE = 1 << 24
"""Where the search for a field's extreme value ends: 16 million tokens, layers or sequences are beyond any job."""

LARGEST_SIZE = 1 << 50
"""The same for sizes in bytes and for bare parameter counts: 1 PiB."""

LARGEST_DEGREE = 1 << 14
"""Where the search for a parallel degree ends: 16,384 GPUs, the size of Llama 3's cluster (arXiv 2407.21783 §3.3.1)."""

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

LARGEST, SMALLEST = "largest", "smallest"


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


def largest_micro_batch_size(job: Job, assessor: Assessor) -> int:
    """The largest micro-batch that fits with everything else unchanged; 0: none."""
    return _largest(_fits_with(job, "batch.micro_batch_size", assessor))


def smallest_gpu(job: Job, assessor: Assessor) -> str:
    """The catalogue name of the smallest whole GPU on which the job fits; empty: none."""
    totals = {name: total for name, total in assessor.memory.gpu_bytes.items() if "/" not in name}
    unset_memory: Changes = (("gpu.memory_bytes", 0),) if job.gpu.memory_bytes else ()
    for name in sorted(totals, key=lambda each: (totals[each], each)):
        changed = assessor.changed(job, (("gpu.type", name), *unset_memory))
        if changed is not None and changed.fits:
            return name
    return ""


@dataclass(frozen=True, slots=True)
class Solved:
    """A value with which a job fits, 0: none; `limit` says whether it is the largest or the smallest, and is empty without one."""

    value: int
    limit: str


def solve(job: Job, path: str, assessor: Assessor) -> Solved:
    """The extreme value of an integer field with which the job fits, everything else unchanged.

    The largest where more needs more memory (sequence length), the smallest where more needs less (a parallel degree).
    Raises FIELD_INVALID for a path that is no integer field, SOLVE_UNBOUNDED when every value fits.
    """
    if path not in integer_paths():
        raise field_error("solve", f"{path} is no integer field of the job; one is batch.micro_batch_size")
    fits = _fits_with(job, path, assessor)
    limit = LARGEST_SIZE if path.endswith(("_bytes", "parameters")) else LARGEST_VALUE
    if fits(1):
        value = _largest(fits, limit)
        if value >= limit:
            raise PeakgateError("SOLVE_UNBOUNDED", f"{path}: every value fits, so it does not decide", hint="solve for another field")
        return Solved(value, LARGEST)
    value = _smallest_degree(fits) if path.startswith("parallelism.") else _smallest(fits, limit)
    return Solved(value, SMALLEST if value else "")


def _smallest_degree(fits: Callable[[int], bool]) -> int:
    """Degrees must divide sizes of the job, so that few are legal: the small ones are all tried, then powers of two."""
    degrees = (*range(2, 65), *(1 << power for power in range(7, LARGEST_DEGREE.bit_length())))
    return next((degree for degree in degrees if fits(degree)), 0)


def _smallest(fits: Callable[[int], bool], limit: int) -> int:
    """The smallest value that fits of a field that saves memory as it grows, by doubling and bisection."""
    high = next((1 << power for power in range(1, limit.bit_length()) if fits(1 << power)), 0)
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high


def _fits_with(job: Job, path: str, assessor: Assessor) -> Callable[[int], bool]:
    def fits(value: int) -> bool:
        changed = assessor.changed(job, ((path, value),))
        return changed is not None and changed.fits

    return fits


def _largest(fits: Callable[[int], bool], limit: int = LARGEST_VALUE) -> int:
    """The largest value that fits, by doubling and bisection: a larger micro-batch or sequence never needs less."""
    if not fits(1):
        return 0
    low, high = 1, 2
    while high <= limit and fits(high):
        low, high = high, high * 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def integer_paths() -> frozenset[str]:
    """Paths of the job's integer fields."""
    return frozenset(_walk(Job, ""))


def _walk(kind: type, prefix: str) -> Iterator[str]:
    hints = get_type_hints(kind)
    for field in dataclasses.fields(kind):
        inner = _inner(hints[field.name])
        if inner is int:
            yield prefix + field.name
        elif dataclasses.is_dataclass(inner) and isinstance(inner, type):
            yield from _walk(inner, f"{prefix}{field.name}.")


def _inner(hint: object) -> object:
    if get_origin(hint) in (Union, types.UnionType):
        return next(each for each in get_args(hint) if each is not type(None))
    return hint
