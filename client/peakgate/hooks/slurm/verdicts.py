"""From a judgement and the rules to what becomes of a submission, what the user reads, and what is written down. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from peakgate.client.imports.joined import UNCHECKED
from peakgate.hooks.asking import BESIDE, Judgement
from peakgate.hooks.message import REFUSED as NOW_REFUSED
from peakgate.hooks.message import Told, lines_of, plain, shown
from peakgate.hooks.slurm.rules import TOLD, Mode, Override, Treatment, WithoutAnswer
from peakgate.hooks.slurm.steering import Steering
from peakgate.hooks.slurm.wire import ACCESS, GRES, NOTHING, Reply
from peakgate.hooks.slurm.wishes import Wishes
from peakgate.v1.names import bare_id
from peakgate.v1.prediction_pb2 import PredictResponse, Suggestion, Verdict

ADMITTED, REFUSED, WOULD_REFUSE = "admitted", "refused", "would_refuse"
TRY = "try"
UNSERVED = "judged without the service, not recorded"
TRY_WITH = "to try it anyway: #PEAKGATE try=REASON"
NOT_READ = "files that it names are not read on the controller: peakgate sbatch reads them"
NOW_ADMITTED = "admitted all the same"
NOT_GRANTED = "the try was not granted"
"""Where whoever judged keeps no tries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One submission when all is known. `is_partial`: the launch names files that were not read. `override`: of a right word.

    `is_told`: the submit host has said this very verdict already. `edit`: a suggestion in the job's own syntax; `steering`: to a card that
    fits; `ask_for`: a type that it may get and that holds it, where it names none and not all do; `too_small`: a card that it may get as
    well and that does not hold it; `by_operator`: root or Slurm's user.
    """

    judgement: Judgement
    treatment: Treatment
    wishes: Wishes = field(default_factory=Wishes)
    override: Override | None = None
    steering: Steering = field(default_factory=Steering)
    is_partial: bool = False
    is_told: bool = False
    ask_for: str = ""
    too_small: str = ""
    by_operator: bool = False
    edit: Callable[[Suggestion], str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What goes back to the controller, and the words of the journal."""

    reply: Reply
    outcome: str
    admitted_by: str = ""


def outcome_of(case: Case) -> Outcome:
    """What becomes of it."""
    answer = case.judgement.answer
    if answer is None:
        return _without_answer(case)
    if answer.verdict == Verdict.VERDICT_REJECT:
        return _rejected(case, answer)
    told = Told(unserved=_unserved(case), card=case.ask_for, too_small="" if case.steering.sets else case.too_small)
    says = tuple(lines_of(answer, told)) if _is_told(case) else ()
    if case.steering.sets:
        says = (*says, plain(f"asks for {case.steering.label} now: not every card that it might have got holds it"))
    return Outcome(reply=Reply(word=stamp_of(answer), says=says, sets=case.steering.sets), outcome=ADMITTED)


def stamp_of(answer: PredictResponse) -> str:
    """The id that the service knows the prediction by; what it does not know counts as unchecked."""
    return bare_id(answer.prediction) or UNCHECKED


def _rejected(case: Case, answer: PredictResponse) -> Outcome:
    enforced = case.treatment.mode is Mode.enforce
    excuse = _excuse(case, answer)
    if enforced and not excuse:
        says = _lines(case, answer, NOW_REFUSED)
        return Outcome(reply=Reply(admits=False, word=GRES, says=says), outcome=REFUSED)
    says = _lines(case, answer, _admitted_words(case, excuse)) if _is_told(case) else ()
    return Outcome(reply=Reply(word=stamp_of(answer), says=says), outcome=WOULD_REFUSE, admitted_by=excuse if enforced else "")


def _excuse(case: Case, answer: PredictResponse) -> str:
    """Who or what admits a job that does not fit; empty: nothing."""
    if case.by_operator:
        return "operator"
    if case.override is not None:
        return f"override {case.override.name}"
    if case.wishes.try_reason and answer.try_anyway.granted:
        return TRY
    return "partly read" if case.is_partial else ""


def _admitted_words(case: Case, excuse: str) -> str:
    words = {TRY: f"admitted to be tried ({case.wishes.try_reason})", "partly read": f"admitted, for {NOT_READ}"}
    return words.get(excuse, f"admitted by {excuse}" if excuse else NOW_ADMITTED)


def _lines(case: Case, answer: PredictResponse, outcome: str) -> tuple[str, ...]:
    suggestion = shown(answer.suggestions)
    change = case.edit(suggestion) if case.edit is not None and suggestion is not None else ""
    offered = TRY_WITH if outcome == NOW_REFUSED and not case.wishes.try_reason else ""
    if outcome == NOW_REFUSED and case.wishes.try_reason:
        outcome = f"refused, {answer.try_anyway.message or NOT_GRANTED}"
    told = Told(
        change=change,
        card=case.ask_for,
        outcome=outcome,
        unserved=_unserved(case),
        try_with=offered,
        is_brief=case.judgement.is_brief,
    )
    return tuple(lines_of(answer, told)[-1:] if case.is_told else lines_of(answer, told))


def _unserved(case: Case) -> str:
    return UNSERVED if case.judgement.by == BESIDE else ""


def _is_told(case: Case) -> bool:
    return case.treatment.mode in TOLD and not case.is_told


def _without_answer(case: Case) -> Outcome:
    """Nobody answered, or the job makes no sense to the service."""
    judgement = case.judgement
    if judgement.is_away and case.treatment.without_answer is WithoutAnswer.refuse and not case.by_operator and case.override is None:
        says = (plain("GPU memory cannot be checked now, and this partition wants it checked; try again later"),)
        return Outcome(reply=Reply(admits=False, word=ACCESS, says=says), outcome=REFUSED)
    if judgement.is_away:
        return Outcome(reply=Reply(word=UNCHECKED), outcome=ADMITTED)
    told = (plain(f"cannot be judged: {judgement.problem}"),) if judgement.problem and _is_told(case) else ()
    return Outcome(reply=Reply(word=UNCHECKED if judgement.problem else NOTHING, says=told), outcome=ADMITTED)
