"""The verdict: (job, figures) -> ADMIT, REJECT or UNDECIDED. Pure. A rejection is never a guess."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from peakgate.memory.job import Job
from peakgate.server.assess import Assessment, Assessor
from peakgate.server.memory import Changes

FOR_LONG_SEQUENCES: Changes = (("loss.implementation", "fused"),)
"""What is favourable for long sequences alone: a fused head makes its weight's gradient in the forward pass, with an fp32 copy of it."""


class Verdict(Enum):
    """What the service advises."""

    ADMIT = "ADMIT"
    REJECT = "REJECT"
    UNDECIDED = "UNDECIDED"


class Ground(Enum):
    """Why the verdict is what it is; `reasons.py` has a text for each."""

    FITS = "fits"
    NO_GPU = "no gpu"
    INCOMPLETE = "incomplete"
    STATES_TOO_LARGE = "states too large"
    TOO_LARGE = "too large"
    HOST_TOO_LARGE = "host too large"
    FIELD_DECIDES = "field decides"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A verdict, its ground, and the unstated fields that decide with the figures under their most favourable values."""

    verdict: Verdict
    ground: Ground
    deciding: Changes = ()
    favourable: Assessment | None = None


def decide(job: Job, assessment: Assessment, assessor: Assessor) -> Decision:
    """The verdict on a job whose figures are `assessment`."""
    if assessment.capacity is None:
        return Decision(verdict=Verdict.UNDECIDED, ground=Ground.NO_GPU)
    if assessment.fits:
        return Decision(verdict=Verdict.ADMIT, ground=Ground.FITS)
    if assessment.prediction.undecided:
        return _decide_incomplete(job, assessment, assessor)
    changes = best_changes(job, assessment, assessor)
    favourable = assessor.changed(job, changes) if changes else None
    if favourable is None or not favourable.fits:
        return Decision(verdict=Verdict.REJECT, ground=Ground.HOST_TOO_LARGE if assessment.card_fits else Ground.TOO_LARGE)
    return _field_decides(job, changes, favourable, assessor)


def _decide_incomplete(job: Job, assessment: Assessment, assessor: Assessor) -> Decision:
    """Figures that miss a part: only model states that pass the card under every unstated value are a rejection. What could not be
    read may be what makes the states smaller."""
    if not assessment.states_fit and not job.unread:
        changes = best_changes(job, assessment, assessor)
        best = assessor.changed(job, changes) if changes else assessment
        if best is not None and not best.states_fit:
            return Decision(verdict=Verdict.REJECT, ground=Ground.STATES_TOO_LARGE)
    return Decision(verdict=Verdict.UNDECIDED, ground=Ground.INCOMPLETE)


def best_changes(job: Job, assessment: Assessment, assessor: Assessor) -> Changes:
    """The most favourable legal value of every field that the submitter did not state.

    All of them at once is the usual case. Where two exclude each other, they are taken one by one, and one that is illegal
    beside the earlier ones, or that does not help, is left out.
    """
    changes = tuple(assessor.memory.favourable(job))
    if not changes:
        return changes
    whole = assessor.changed(job, changes)
    if whole is not None:
        return _fewer(job, changes, whole, assessor)
    kept: Changes = ()
    best = assessment
    for change in changes:
        attempt = assessor.changed(job, (*kept, change))
        if attempt is not None and _size(attempt) <= _size(best):
            kept, best = (*kept, change), attempt
    return kept


def _fewer(job: Job, changes: Changes, whole: Assessment, assessor: Assessor) -> Changes:
    """Without what helps long sequences and costs short ones more than it saves, where that is smaller."""
    rest = tuple(change for change in changes if change not in FOR_LONG_SEQUENCES)
    fewer = assessor.changed(job, rest) if rest and rest != changes else None
    return rest if fewer is not None and _size(fewer) < _size(whole) else changes


def _size(assessment: Assessment) -> tuple[int, int, int]:
    return assessment.prediction.states_bytes, assessment.bound_bytes, assessment.prediction.host_bytes


def _field_decides(job: Job, changes: Changes, favourable: Assessment, assessor: Assessor) -> Decision:
    """The single field that makes the job fit, else those of the set that are needed."""
    for change in changes:
        alone = assessor.changed(job, (change,))
        if alone is not None and alone.fits:
            return Decision(verdict=Verdict.UNDECIDED, ground=Ground.FIELD_DECIDES, deciding=(change,), favourable=alone)
    needed, figures = changes, favourable
    for change in changes:
        without = tuple(each for each in needed if each != change)
        attempt = assessor.changed(job, without)
        if attempt is not None and attempt.fits:
            needed, figures = without, attempt
    return Decision(verdict=Verdict.UNDECIDED, ground=Ground.FIELD_DECIDES, deciding=needed, favourable=figures)


def oom_phase(assessment: Assessment) -> str:
    """The first phase of the first step whose need passes the card; empty when none does, or when no GPU is stated."""
    if assessment.capacity is None:
        return ""
    return next((phase for phase, peak_bytes in assessment.prediction.phase_peaks if peak_bytes > assessment.usable_bytes), "")


def retries(assessment: Assessment) -> bool:
    """Whether the step completes only because the allocator frees its cache and tries again.

    The device peak (reserved, context and libraries) is what the card would have to hold for the allocator never to retry.
    """
    fits_barely = assessment.prediction.required_bytes <= assessment.usable_bytes < assessment.prediction.device_bytes
    return assessment.decided and fits_barely
