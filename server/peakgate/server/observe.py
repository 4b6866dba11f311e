"""An ended attempt -> its one observation: the worst GPU, between which ends the need lies, or why nothing can be said. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from peakgate.calibration import Observation, Subject
from peakgate.server.classing import RULES, Evidence, Kind, Rule, rule_for
from peakgate.server.clock import MICROSECONDS
from peakgate.server.figures import figures_of, worst_of
from peakgate.server.gpu_figures import GpuFigures
from peakgate.server.lengths import AtLength
from peakgate.server.store.records import AGENT, FLAGS, Attempt, PeakRow
from peakgate.server.subjects import subject_from

NO_PEAKS = "NO_PEAKS"
"""The reason word of an attempt of which no GPU was seen."""

REASONS = (NO_PEAKS, *(rule.reason for rule in RULES))
"""Every word that says why an observation is no exact one. Part of the interface: words are only added."""

ORIGIN_OF_SOURCE = {"slurm": "sacct", "prometheus": "prometheus"}
"""Who reported a figure, by its source; the others are an agent's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """What an attempt says. `observation` is None when it is dropped; `reason` and `message` say why it is not exact."""

    kind: Kind = Kind.DROPPED
    observed_bytes: int = 0
    observation: Observation | None = None
    reason: str = ""
    message: str = ""
    source: str = ""
    confidence: str = "X"
    origin: str = ""
    node: str = ""
    gpu_uuid: str = ""
    steps_done: int = 0
    longest_sequence: int = 0


def observe(attempt: Attempt, *, model_version: str, received_at: float = math.inf, at_length: AtLength | None = None) -> Observed:
    """The one observation of an attempt: its worst GPU, by device peak. Figures of another memory model are not compared.

    `at_length` predicts the job for another length, when its stated one is a cap. `received_at` is in seconds since the epoch, infinite
    when it is unknown.
    """
    gpus = figures_of(attempt.peaks, card_bytes=attempt.card_bytes)
    worst = worst_of(gpus)
    if worst is None:
        return Observed(reason=NO_PEAKS, message="the job ended and no GPU of it was seen")
    subject = subject_from(attempt.subject) if attempt.subject else None
    predicted = subject if at_length is None else at_length(worst.longest_sequence)
    is_same_model = attempt.model_version == model_version and subject is not None
    evidence = _evidence(attempt, gpus, worst, is_same_model=is_same_model, is_length_unknown=predicted is None)
    rule = rule_for(evidence)
    compared = predicted if predicted is not None and rule.kind is not Kind.LOWER else subject
    observed = Observed(
        kind=rule.kind,
        observed_bytes=worst.most_peak_bytes,
        reason=rule.reason,
        message=rule.message,
        source=worst.rests_on,
        confidence=worst.confidence if rule.keeps_confidence else "X",
        origin=ORIGIN_OF_SOURCE.get(worst.source, AGENT),
        node=worst.node,
        gpu_uuid=worst.gpu_uuid,
        steps_done=evidence.steps_done or 0,
        longest_sequence=worst.longest_sequence,
    )
    if rule.kind is Kind.DROPPED or compared is None:
        return observed
    return replace(observed, observation=_observation(attempt, worst, rule, compared, received_at))


def _evidence(attempt: Attempt, gpus: Sequence[GpuFigures], worst: GpuFigures, *, is_same_model: bool, is_length_unknown: bool) -> Evidence:
    counted = [row for row in attempt.peaks if row.steps_done or row.torch_allocated_bytes]
    return Evidence(
        worst=worst,
        event=attempt.event,
        is_same_model=is_same_model,
        has_several=any(row.flags & FLAGS["several"] for row in attempt.peaks),
        has_oom=attempt.event == "oom" or any(each.has_oom for each in gpus),
        has_xid=any(each.has("xid") for each in gpus),
        was_cut_off=any(each.has("truncated") for each in gpus),
        is_end_unknown=any(each.has("censored") for each in gpus) and not attempt.ended_well,
        steps_done=max((row.steps_done for row in counted), default=None),
        is_length_unknown=is_length_unknown,
    )


def _observation(attempt: Attempt, worst: GpuFigures, rule: Rule, compared: Subject, received_at: float) -> Observation:
    return Observation(
        prediction=attempt_name(attempt),
        subject=replace(compared, user=user_of(attempt.peaks)),
        lower_bytes=rule.lower_bytes(worst),
        upper_bytes=None if rule.kind is Kind.LOWER else worst.most_peak_bytes,
        finished_at=attempt.finished_us / MICROSECONDS,
        config=attempt.job_digest,
        received_at=received_at,
        has_statistics=worst.has_helper,
    )


def user_of(peaks: Iterable[PeakRow]) -> str:
    """Who ran the job, by the owner of its processes on a cluster; empty when nobody says, several do, or it is root, whom jobs share."""
    users = {(row.cluster, row.uid) for row in peaks if row.uid > 0}
    return "/".join(str(part) for part in users.pop()) if len(users) == 1 else ""


def attempt_name(attempt: Attempt) -> str:
    """What the calibration knows an attempt by: jobs that share a prediction are observations of their own."""
    return f"{attempt.prediction}/{attempt.job}/{attempt.restart}"
