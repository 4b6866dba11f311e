"""From a judgement and the rules to the answer to a review: what the submitter reads, and what the audit log keeps. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from peakgate.hooks.asking import BESIDE
from peakgate.hooks.kubernetes.admission import Answer
from peakgate.hooks.kubernetes.annotations import OVERRIDE, OWN_WORDS, TRY
from peakgate.hooks.kubernetes.judging import Judged
from peakgate.hooks.kubernetes.outcomes import (
    ALLOWED,
    DENIED,
    NO_VERDICT,
    OVERRIDDEN,
    SKIPPED,
    TRIED,
    UNCHECKED,
    UNREAD,
    VERDICTS,
    WOULD_DENY,
)
from peakgate.hooks.kubernetes.rules import TOLD, Mode
from peakgate.hooks.message import MARK, Told, ascii_of, cut, lines_of, plain, shown
from peakgate.readers.stated import SPEC
from peakgate.v1.prediction_pb2 import PredictResponse, Suggestion, Verdict

NOT_CHECKED = "not checked: nobody judged in time whether this job fits its GPUs"
UNSERVED = "judged without the service, not recorded"
TRY_WITH = f"to try it: annotate {TRY}=REASON"
DRY_TRY = "a dry run records no try, so that this cannot be granted now"
THE_LAUNCH = "the launch"
STATE_ALL = f"have it read from a ConfigMap (readConfigMaps), or state what it says, and unread: [], in the annotation {SPEC}"
PARTLY = f"admitted, for a part of {THE_LAUNCH} is not known here"
LONGEST_LINE = 250
LONGEST_AUDIT = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """`override`: the reason that the submitter gives; `may_override`: whether that counts."""

    try_reason: str = ""
    override: str = ""
    may_override: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One review when all is known. `edit`: a suggestion in the job's own syntax; `sources`: where each field stands; `overruled`: that its
    own word for its GPU does not count; `chosen`: which of its launches is judged."""

    judged: Judged
    mode: Mode
    wishes: Wishes = field(default_factory=Wishes)
    is_partial: bool = False
    is_dry_run: bool = False
    sources: Mapping[str, str] = field(default_factory=dict)
    overruled: str = ""
    chosen: str = ""
    edit: Callable[[Suggestion], str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """The answer with the words of the metrics."""

    answer: Answer = field(default_factory=Answer)
    verdict: str = NO_VERDICT
    outcome: str = SKIPPED


def decide(case: Case) -> Decided:
    """What becomes of the review."""
    judgement = case.judged.judgement
    if judgement.answer is None:
        return not_judged(case.mode, "" if judgement.is_away else judgement.problem)
    if case.judged.verdict == Verdict.VERDICT_REJECT:
        return _rejected(case, judgement.answer)
    is_open = case.judged.verdict != Verdict.VERDICT_ADMIT
    said = (_open(case, judgement.answer),) if is_open else ()
    return _decided(case, judgement.answer, ALLOWED, warnings=(*said, *_overruled(case)) if case.mode in TOLD else ())


def not_judged(mode: Mode, problem: str = "") -> Decided:
    """Nobody answered (no `problem`), or there is no job to be judged."""
    text = f"not checked: {problem}; {OWN_WORDS}" if problem else NOT_CHECKED
    said = _with_end(f"not checked: {problem}", f"; {OWN_WORDS}") if problem else plain(NOT_CHECKED)
    outcome = UNREAD if problem else UNCHECKED
    audit = {"outcome": outcome, "mode": mode.value, "reason": text[:LONGEST_AUDIT]}
    return Decided(answer=Answer(warnings=(said,) if mode in TOLD else (), audit=audit), outcome=outcome)


def _rejected(case: Case, answer: PredictResponse) -> Decided:
    excuse = _excuse(case, answer)
    if case.mode is Mode.enforce and not excuse:
        lines = _lines(case, answer, _refused_words(case, answer))
        message = "\n".join(line.removeprefix(MARK) for line in lines)
        return _decided(case, answer, DENIED, message=message)
    words = {OVERRIDDEN: f"admitted by override: {case.wishes.override}", TRIED: f"admitted to be tried: {case.wishes.try_reason}"}
    said = _lines(case, answer, words.get(excuse, excuse or "admitted all the same")) if case.mode in TOLD else ()
    return _decided(case, answer, excuse if excuse in words else WOULD_DENY, warnings=said)


def _excuse(case: Case, answer: PredictResponse) -> str:
    """What admits a job that does not fit; empty: nothing."""
    if case.wishes.override and case.wishes.may_override:
        return OVERRIDDEN
    if case.wishes.try_reason and answer.try_anyway.granted:
        return TRIED
    return PARTLY if case.is_partial else ""


def _refused_words(case: Case, answer: PredictResponse) -> str:
    if case.wishes.override:
        return f"refused, {OVERRIDE} is not for you"
    if not case.wishes.try_reason:
        return "refused"
    return f"refused, {DRY_TRY if case.is_dry_run else answer.try_anyway.message or 'the try was not granted'}"


def _lines(case: Case, answer: PredictResponse, outcome: str) -> tuple[str, ...]:
    suggestion = shown(answer.suggestions)
    change = case.edit(suggestion) if case.edit is not None and suggestion is not None else ""
    offered = TRY_WITH if outcome == "refused" and not _unserved(case) else ""  # nobody else grants one
    if case.chosen:
        outcome = outcome.replace(THE_LAUNCH, case.chosen) if outcome == PARTLY else f"{case.chosen}: {outcome}"
    told = Told(change=change, outcome=outcome, unserved=_unserved(case), try_with=offered, is_brief=case.judged.judgement.is_brief)
    return (*lines_of(answer, told), *_overruled(case))


def _overruled(case: Case) -> tuple[str, ...]:
    return (plain(case.overruled, LONGEST_LINE),) if case.overruled else ()


def _open(case: Case, answer: PredictResponse) -> str:
    """What is missing, and what to do where a part of the launch was not read."""
    unread = case.judged.job.unread if case.judged.job is not None and not case.judged.reason else ()
    is_unread = any(each.startswith("what ") for each in unread)  # a file; of a method there is nothing to be read
    ends = (f"; {STATE_ALL}" if is_unread else "", f" ({_unserved(case)})" if _unserved(case) else "")
    which = f"{case.chosen} " if case.chosen else ""
    return _with_end(f"{which}cannot be judged: {case.judged.reason or answer.reason}", "".join(ends))


def _with_end(text: str, end: str) -> str:
    """A line whose end is never cut."""
    return plain(cut(ascii_of(text), LONGEST_LINE - len(MARK) - len(end)) + end, LONGEST_LINE)


def _unserved(case: Case) -> str:
    return UNSERVED if case.judged.judgement.by == BESIDE else ""


def _decided(case: Case, answer: PredictResponse, outcome: str, *, message: str = "", warnings: tuple[str, ...] = ()) -> Decided:
    verdict = Verdict.Name(case.judged.verdict).removeprefix("VERDICT_").lower()
    reply = Answer(is_allowed=outcome != DENIED, message=message, warnings=warnings, audit=_audit(case, answer, outcome, verdict))
    return Decided(answer=reply, verdict=verdict if verdict in VERDICTS else NO_VERDICT, outcome=outcome)


def _audit(case: Case, answer: PredictResponse, outcome: str, verdict: str) -> dict[str, str]:
    told = {
        "outcome": outcome,
        "mode": case.mode.value,
        "verdict": verdict,
        "reason": case.judged.reason or answer.reason,
        "prediction": answer.prediction,
        "gpu": answer.capacity.gpu,
        "overruled": case.overruled,
        "launch": case.chosen,
        "bound-bytes": str(answer.peak.bound_bytes or ""),
        "usable-bytes": str(answer.capacity.usable_bytes or ""),
        "by": case.judged.judgement.by,
        "try": case.wishes.try_reason,
        "override": case.wishes.override,
        "sources": "; ".join(f"{path}: {place}" for path, place in case.sources.items()),
    }
    return {name: value[:LONGEST_AUDIT] for name, value in told.items() if value}
