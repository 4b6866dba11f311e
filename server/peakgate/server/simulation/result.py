"""What a simulation answers: every policy's tally beside what is to be said of all of them. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from peakgate.calibration.gate import judge_size
from peakgate.server.memory import MemoryModel
from peakgate.server.simulation.past import Past, Truth
from peakgate.server.simulation.policies import Candidate
from peakgate.server.simulation.replay import Stopped, Tally, in_order, replay
from peakgate.v1 import calibration_simulation_pb2 as pb

FEW = 10
"""Counts below this have a standard error of a third of themselves and more (Poisson)."""

MOST_NAMED = 1000
"""Refused attempts that an answer names; the others are counted."""

ONLY_WHAT_RAN = (
    "a history holds the jobs that ran: what was rejected before and never tried is not in it, so rejections that were right are counted "
    "too low, and a policy that admits more than the one of that time looks safer than it is"
)
CLOSED_LOOP = "each policy learned only from jobs that it admits, and from {share:.0%} of those that it rejects, which run all the same"
NOT_ADMITTED = "a rejection is a job that is not admitted: some of them the service answers with UNDECIDED and the field that decides"
NO_WAIT = "attempts without submitted_at are judged by all that had ended before their own end; a service knew less when they came"
STOPPED_EARLY = "of {count} attempts nobody knows whether they fit: they were stopped below the card, by a failure or by somebody"
FEW_OOMS = (
    "no policy let more than {most} jobs run out of memory: so few differ by chance, and none among n may still be 3 in n (rule of three: "
    "Hanley and Lippman-Hand, JAMA 249, 1983)"
)
DISTRUSTED = "under some policies a calibration did not trust itself, for up to {most} jobs: their bounds were the wide ones"
ABOUT_OTHERS = "some figures cannot be about the job that is predicted, and nothing is learned of them: {words}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What all policies are measured with."""

    override_share: float
    oom_cost: float
    rejection_cost: float


def simulate(
    history: Sequence[Past], candidates: Iterable[Candidate], terms: Terms, memory: MemoryModel, *, stopped: Stopped = lambda: False
) -> pb.SimulateCalibrationResponse:
    """Every policy on the same jobs; policies that are the same under two names are replayed once. Raises StoppedError."""
    jobs, known = in_order(history), dict[tuple[object, ...], Tally]()
    outcomes = []
    for each in candidates:
        key = each.fixed_ratio, each.policy
        if key not in known:
            known[key] = replay(jobs, each, memory, override_share=terms.override_share, stopped=stopped)
        outcomes.append(_outcome(each, known[key], terms))
    least = min((outcome.cost for outcome in outcomes), default=0.0)
    for outcome in outcomes:
        outcome.cheapest = outcome.cost == least
    truths, kept_out = Counter(past.truth for past in jobs), _kept_out(jobs)
    return pb.SimulateCalibrationResponse(
        policies=outcomes,
        attempts=len(jobs),
        ooms=truths[Truth.DIES],
        unknown=truths[Truth.UNKNOWN],
        kept_out=[pb.ReasonCount(reason=reason, attempts=count) for reason, count in sorted(kept_out.items())],
        override_share=terms.override_share,
        oom_cost=terms.oom_cost,
        rejection_cost=terms.rejection_cost,
        notes=_notes(jobs, outcomes, truths, kept_out, terms),
        model_version=memory.version,
    )


def _outcome(candidate: Candidate, tally: Tally, terms: Terms) -> pb.PolicyOutcome:
    admitted, rejected = tally.admitted, tally.rejected
    return pb.PolicyOutcome(
        policy=candidate.text,
        title=candidate.title,
        jobs=sum(admitted.values()) + sum(rejected.values()),
        admitted=sum(admitted.values()),
        admitted_ooms=admitted[Truth.DIES],
        admitted_unknown=admitted[Truth.UNKNOWN],
        right_rejections=rejected[Truth.DIES],
        false_rejections=rejected[Truth.FITS],
        rejected_unknown=rejected[Truth.UNKNOWN],
        unused_bytes=round(tally.unused_bytes / max(1, tally.known_needs)),
        learned=tally.learned,
        distrusted=tally.distrusted,
        cost=tally.cost(oom_cost=terms.oom_cost, rejection_cost=terms.rejection_cost),
    )


def _kept_out(jobs: Iterable[Past]) -> Counter[str]:
    refusals = (judge_size(past.observation) for past in jobs if past.observation is not None)
    return Counter(refusal.reason for refusal in refusals if refusal is not None)


def _notes(
    jobs: Sequence[Past], outcomes: Sequence[pb.PolicyOutcome], truths: Mapping[Truth, int], kept_out: Mapping[str, int], terms: Terms
) -> list[str]:
    most_ooms = max((each.admitted_ooms for each in outcomes), default=0)
    most_distrusted = max((each.distrusted for each in outcomes), default=0)
    words = ", ".join(f"{reason} {count}" for reason, count in sorted(kept_out.items()))
    found = (
        (True, ONLY_WHAT_RAN),
        (True, CLOSED_LOOP.format(share=terms.override_share)),
        (True, NOT_ADMITTED),
        (most_ooms < FEW, FEW_OOMS.format(most=most_ooms)),
        (any(past.submitted_at == past.finished_at for past in jobs), NO_WAIT),
        (bool(truths[Truth.UNKNOWN]), STOPPED_EARLY.format(count=truths[Truth.UNKNOWN])),
        (bool(most_distrusted), DISTRUSTED.format(most=most_distrusted)),
        (bool(words), ABOUT_OTHERS.format(words=words)),
    )
    return [note for applies, note in found if applies]
