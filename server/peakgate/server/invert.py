"""One numeric field of a job inverted: the extreme value with which it fits, everything else unchanged. Pure.

The largest where more needs more memory (sequence length), the smallest where more needs less (a parallel degree).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from peakgate.memory.absurd import LARGEST as LARGEST_SIZES
from peakgate.memory.absurd import too_large
from peakgate.memory.catalog.nearest import did_you_mean
from peakgate.memory.change import value_at
from peakgate.memory.check import world_of
from peakgate.memory.job import Job
from peakgate.memory.prediction import FieldError, JobError
from peakgate.server.assess import Assessment, Assessor
from peakgate.server.domain import Domain, domain_of
from peakgate.server.errors import PeakgateError, field_error
from peakgate.server.fields import numeric_paths
from peakgate.server.moves import moved
from peakgate.server.wishes import NO_WISHES, Wishes

Limit = Literal["largest", "smallest", ""]

LARGEST: Limit = "largest"
SMALLEST: Limit = "smallest"

NEIGHBOURS = 8
"""How far around an illegal value a legal one is looked for: micro-batches or widths that must be even, or divide by eight."""


@dataclass(frozen=True, slots=True)
class Solved:
    """A value with which a job fits; `limit` says whether it is the largest or the smallest, and is empty when none fits."""

    value: int | float
    limit: Limit


NOTHING = Solved(0, "")


def solve(job: Job, path: str, assessor: Assessor, wishes: Wishes = NO_WISHES) -> Solved:
    """The extreme value of a numeric field with which the job fits, as the job document writes it.

    Raises FIELD_INVALID for a path that is no numeric field, that `wishes` keep or that the job's other fields fix, and
    SOLVE_UNBOUNDED when every value fits.
    """
    kind = numeric_paths().get(path)
    if kind is None:
        near = did_you_mean(path, numeric_paths())
        raise field_error("solve", f"{path} is no numeric field of the job; {near or 'one is batch.micro_batch_size'}")
    if path.startswith("lora.") and job.lora is None:
        raise field_error("solve", f"{path}: the job trains no adapters; state lora first, or solve for another field")
    _refuse_kept(job, path, wishes)
    search = Search(job, path, domain_of(job, path, kind), assessor)
    solved = search.run()
    if not solved.limit:
        search.explain()
    return solved


def largest_micro_batch_size(job: Job, assessor: Assessor) -> int:
    """The largest micro-batch that fits with everything else unchanged; 0: none. Where every one fits, the largest that is no mistake."""
    try:
        solved = Search(job, MICRO_BATCH, domain_of(job, MICRO_BATCH, int), assessor).run()
    except PeakgateError:
        return LARGEST_SIZES[MICRO_BATCH]
    return int(solved.value)


MICRO_BATCH = "batch.micro_batch_size"


def _refuse_kept(job: Job, path: str, wishes: Wishes) -> None:
    """A field cannot be both inverted and kept; fields that move with it neither."""
    for changed, _ in moved(job, path, world_of(job)):
        kept = wishes.keeper(changed)
        if kept:
            along = "" if changed == path else f" and moves {changed} with it"
            raise field_error("solve", f"{path} is to be solved{along}, and keep: {kept} holds it; leave one of them out")


class Search:
    """Tries values of one field and remembers what came of them: an assessment, or the error of a job that is not legal."""

    def __init__(self, job: Job, path: str, domain: Domain, assessor: Assessor) -> None:
        self.job, self.path, self.domain, self.assessor = job, path, domain, assessor
        self.tried: dict[int | float, Assessment | JobError] = {}

    def run(self) -> Solved:
        """The extreme value that fits, or NOTHING."""
        if self.domain.sparse:
            return self._sparse()
        self.domain = self._in_steps(value_at(self.job, self.path))
        return self._dense()

    def _in_steps(self, stated: object) -> Domain:
        """Where no neighbour of the stated value is legal (a width that heads must divide): multiples of the smallest step that is."""
        if not isinstance(stated, int) or stated <= 1 or self.domain.digits:
            return self.domain
        for step in (step for step in range(1, stated) if stated % step == 0):
            if any(self._is_legal(value) for value in (stated + step, stated - step)):
                return self.domain if step == 1 else self.domain.in_steps_of(step)
        return self.domain

    def _sparse(self) -> Solved:
        """Few values are legal, because they divide something: they are tried from the end where the field costs least."""
        first = self._first_legal(self.domain.indices())
        if first is None:
            return NOTHING
        grows = self.domain.may_grow and self._excess(first) < self._excess(self._first_legal(reversed(self.domain.indices())) or first)
        order = reversed(self.domain.indices()) if grows else self.domain.indices()
        best = next((index for index in order if self._fits(index)), None)
        if best is None:
            return NOTHING
        return Solved(self.domain.value(best), LARGEST if grows else SMALLEST)

    def _first_legal(self, indices: Iterable[int]) -> int | None:
        return next((index for index in indices if self._legal(index) is not None), None)

    def _dense(self) -> Solved:
        """Nearly every value is legal: the fit is followed over doubling values to where it turns, and that place is bisected."""
        legal: list[int] = []
        for index in self.domain.doublings():
            if self._legal(index) is None:
                if legal:
                    return self._up_to(legal, index)
                continue
            if legal and self._fits(index) != self._fits(legal[-1]):
                return self._between(legal[-1], index)
            if legal and not self._fits(index) and self._excess(index) > self._excess(legal[-1]):
                return NOTHING
            legal.append(index)
        return self._at_the_end(legal, bounded=self.domain.bounded) if legal else NOTHING

    def _up_to(self, legal: list[int], index: int) -> Solved:
        """No legal value is as large as this one. A limit of the service on absurd sizes is none of the job's."""
        if not self._fits(legal[-1]):
            return NOTHING
        if too_large(self.path, self.domain.value(index)):
            return self._at_the_end(legal, bounded=False)
        last = self._bisect(legal[-1], index, fits_below=True)[0]
        return self._at_the_end([*legal, last], bounded=True)

    def _between(self, low: int, high: int) -> Solved:
        rises = self._fits(low)
        low, high = self._bisect(low, high, fits_below=rises)
        return Solved(self.domain.value(low), LARGEST) if rises else Solved(self.domain.value(high), SMALLEST)

    def _at_the_end(self, legal: list[int], *, bounded: bool) -> Solved:
        """Every legal value fits, or none does."""
        if not self._fits(legal[0]):
            return NOTHING
        if legal[0] == legal[-1]:
            self._explain_fixed()
        first, last = self._excess(legal[0]), self._excess(legal[-1])
        if last < first:
            return Solved(self.domain.value(legal[0]), SMALLEST)
        if first < last and bounded:
            return Solved(self.domain.value(legal[-1]), LARGEST)
        raise PeakgateError("SOLVE_UNBOUNDED", f"{self.path}: every value fits, so it does not decide", hint="solve for another field")

    def _bisect(self, low: int, high: int, *, fits_below: bool) -> tuple[int, int]:
        """Neighbouring indices where the fit turns; what is not legal, and has no legal neighbour, does not fit."""
        while high - low > 1:
            middle = self._legal_near((low + high) // 2, low, high)
            if middle is None:
                return low, high
            if self._fits(middle) == fits_below:
                low = middle
            else:
                high = middle
        return low, high

    def _legal_near(self, middle: int, low: int, high: int) -> int | None:
        """`middle`, or a legal index close to it; an illegal one when all around it are, which then counts as one that does not fit."""
        around = sorted(range(max(low + 1, middle - NEIGHBOURS), min(high, middle + NEIGHBOURS + 1)), key=lambda index: abs(index - middle))
        return next((index for index in around if self._legal(index) is not None), middle if middle not in (low, high) else None)

    def _try(self, value: int | float) -> Assessment | JobError:
        if value not in self.tried:
            try:
                self.tried[value] = self.assessor.assess(self.assessor.memory.with_changes(self.job, moved(self.job, self.path, value)))
            except JobError as error:
                self.tried[value] = error
        return self.tried[value]

    def _is_legal(self, value: int | float) -> bool:
        return not isinstance(self._try(value), JobError)

    def _legal(self, index: int) -> Assessment | None:
        found = self._try(self.domain.value(index))
        return None if isinstance(found, JobError) else found

    def _fits(self, index: int) -> bool:
        found = self._legal(index)
        return found is not None and found.fits

    def _excess(self, index: int) -> int:
        """Bytes that the job is too large by: what falls as a card grows, although its margin may rise with the card."""
        found = self._legal(index)
        return found.bound_bytes - found.usable_bytes if found is not None else 0

    def explain(self) -> None:
        """Why no value was found, where it is not that none fits: other fields fix this one, no card, too little said."""
        legal = {value: each for value, each in self.tried.items() if not isinstance(each, JobError)}
        if set(legal) <= {self._stated()}:
            self._explain_fixed()
        if all(each.capacity is None for each in legal.values()):
            raise field_error("solve", f"{self.path} cannot be solved without a card to fit: state gpu.type or gpu.memory_bytes")
        undecided = [each.prediction.undecided for each in legal.values()]
        if all(undecided):
            raise field_error("solve", f"{self.path} cannot be solved: {'; '.join(undecided[0])}")

    def _stated(self) -> object:
        return value_at(self.job, self.path)

    def _explain_fixed(self) -> None:
        errors = [each for each in self.tried.values() if isinstance(each, JobError)]
        if not errors:
            return
        cause = errors[0].fields[0]
        stated = self._stated()
        fixed = f"is fixed at {stated}" if stated is not None else "has no legal value"
        text = f"{self.path} {fixed} by what else the job states: {cause.field} {cause.description}"
        others = () if cause.field == self.path else (FieldError(field=cause.field, description=cause.description),)
        raise PeakgateError("FIELD_INVALID", f"solve: {text}", fields=(FieldError(field="solve", description=text), *others))
