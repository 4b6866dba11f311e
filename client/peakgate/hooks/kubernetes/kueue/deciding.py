"""From a judgement to the state of a check. Pure.

An AdmissionCheck has no failure policy: a workload that is not answered waits for ever. So whatever is not a clear rejection is Ready, with
the reason in its message; a service that is away is asked again three times, and then the workload goes on unchecked.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

from peakgate.client.render.card import card_words
from peakgate.client.render.suggestions import assignments
from peakgate.client.render.text import visible
from peakgate.client.render.units import gb
from peakgate.hooks.kubernetes.candidates import Conclusion
from peakgate.hooks.kubernetes.kueue.checks import READY, REJECTED, RETRY, Check, CheckMode, Outcome
from peakgate.v1.prediction_pb2 import PredictResponse, Verdict

MOST_RETRIES = 3
FIRST_RETRY_SECONDS = 60
"""Then twice as long each time, as Kueue's own checks do (pkg/workload/admissionchecks.go UpdateAdmissionCheckRequeueState)."""

REASONS = (
    FITS := "fits",
    REJECTS := "rejected",
    WOULD_REJECT := "would_reject",
    TRIED := "tried",
    UNDECIDED := "undecided",
    UNREAD := "unread",
    NO_GPUS := "no_gpus",
    RETRIES := "retry",
    UNCHECKED := "unchecked",
    RELEASED := "released",
    OFF := "off",
    FAULT := "fault",
)
"""Words of the metric. unread: the workload does not say what it trains; unchecked: the service was away too long; fault: our own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What came of asking. `answer`: for the card that `conclusion` shows; None where nobody answered (`is_away`), or there is nothing to
    judge, for the reason `problem`. Not `has_gpus`: no pod asks for any. `is_partial`: a part of the launch is not in the workload.
    `podsets`: those with GPUs."""

    answer: PredictResponse | None = None
    conclusion: Conclusion | None = None
    problem: str = ""
    is_away: bool = False
    has_gpus: bool = True
    is_partial: bool = False
    podsets: tuple[str, ...] = ()


def settled(check: Check) -> Outcome | None:
    """What a check says without looking at the workload; None when it must be judged."""
    if check.release:
        return Outcome(state=READY, reason=RELEASED, message=f"not checked: the check is released ({visible(check.release)[:200]})")
    if check.mode is CheckMode.off:
        return Outcome(state=READY, reason=OFF, message="not checked: the check is off")
    return None


def decided(check: Check, judged: Judged, retries: int) -> Outcome:
    """The state. `retries`: how often the service was away for this workload before."""
    if not judged.has_gpus:
        return Outcome(state=READY, reason=NO_GPUS, message="no pod asks for a GPU")
    if judged.is_away:
        return _away(retries)
    if judged.answer is None:
        return Outcome(state=READY, reason=UNREAD, message=f"not checked: {judged.problem}")
    verdict = judged.conclusion.verdict if judged.conclusion is not None else judged.answer.verdict
    if verdict == Verdict.VERDICT_REJECT:
        return _rejected(check, judged.answer, is_partial=judged.is_partial)
    prediction = judged.answer.prediction
    if verdict == Verdict.VERDICT_ADMIT:
        return Outcome(state=READY, reason=FITS, message=_fits(judged.answer), prediction=prediction)
    why = judged.conclusion.reason if judged.conclusion is not None else ""
    return Outcome(
        state=READY, reason=UNDECIDED, message=f"cannot be judged: {why or visible(judged.answer.reason)}", prediction=prediction
    )


def _away(retries: int) -> Outcome:
    if retries >= MOST_RETRIES:
        return Outcome(state=READY, reason=UNCHECKED, message=f"not checked: the service was away {MOST_RETRIES + 1} times")
    seconds = FIRST_RETRY_SECONDS * 2**retries
    message = f"the service is away: asked again after {seconds} s ({retries + 1} of {MOST_RETRIES})"
    return Outcome(state=RETRY, reason=RETRIES, message=message, requeue_seconds=seconds)


def _rejected(check: Check, answer: PredictResponse, *, is_partial: bool) -> Outcome:
    text = _too_large(answer)
    if answer.try_anyway.granted:
        return Outcome(state=READY, reason=TRIED, message=f"tried all the same: {text}", prediction=answer.prediction)
    if is_partial:
        text = f"a part of the launch is not in the workload, and by what is there {text}"
    elif check.mode is CheckMode.enforce:
        return Outcome(state=REJECTED, reason=REJECTS, message=text)
    return Outcome(state=READY, reason=WOULD_REJECT, message=f"does not fit, admitted all the same: {text}", prediction=answer.prediction)


def _too_large(answer: PredictResponse) -> str:
    change = next((each for each in answer.suggestions if each.fits and each.title not in answer.reason), None)
    fix = (
        f"; cheapest change: {', '.join(assignments(change)) or change.title} (then {gb(change.bound_bytes)})" if change is not None else ""
    )
    more = f"; more: peakgate explain {answer.prediction.removeprefix('predictions/')}" if answer.prediction else ""
    return textwrap.shorten(visible(f"{answer.reason}{fix}"), 900, placeholder=" …") + more


def _fits(answer: PredictResponse) -> str:
    return f"fits: a GPU needs {gb(answer.peak.bound_bytes)} of {gb(answer.capacity.usable_bytes)} of {card_words(answer.capacity)}"
