"""What the gate's verdicts were worth: its journal held against what came of the jobs. Pure.

In mode shadow every job runs, so that a week of it says what enforcing would have stopped, and what it would have refused for nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from enum import StrEnum

from peakgate.hooks.slurm.joining import NEARLY_FULL
from peakgate.v1.names import full_name
from peakgate.v1.plain import Plain
from peakgate.v1.prediction_service_pb2 import PredictionSummary


class Worth(StrEnum):
    """What a verdict was worth, once it is known what came of the job."""

    STOPPED = "would have been stopped"
    WRONGLY_REFUSED = "would have been refused for nothing"
    MISSED = "ran out of memory all the same"
    RIGHT = "was rightly let through"
    NOT_CHECKED = "was not checked"
    UNKNOWN = "is not known yet"


LISTED = (Worth.STOPPED, Worth.WRONGLY_REFUSED, Worth.MISSED)
"""Those that an operator wants to see one by one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One decision of the journal, and what came of it. `state`: of the prediction, empty while nothing was seen."""

    time: str
    cluster: str
    user: str
    job_name: str
    partition: str
    mode: str
    verdict: str
    outcome: str
    prediction: str
    bound_bytes: int
    usable_bytes: int
    observed_bytes: int
    state: str
    worth: Worth

    def as_dict(self) -> dict[str, Plain]:
        """As JSON."""
        return {**asdict(self), "worth": str(self.worth)}


Look = Callable[[str], PredictionSummary | None]
"""The stored line of a prediction; None where nobody knows it."""


def judged_since(decisions: Iterable[Mapping[str, object]], *, since: float, look: Look) -> list[Judged]:
    """The submissions since a moment (seconds since the epoch) with what came of them, in the order of the journal."""
    new = [each for each in decisions if _text(each, "operation") in ("", "submit") and _moment(_text(each, "time")) >= since]
    return [_judged(each, look) for each in new]


def counts(judged: Iterable[Judged]) -> dict[Worth, int]:
    """How many there are of each worth, zeros included."""
    found = dict.fromkeys(Worth, 0)
    for each in judged:
        found[each.worth] += 1
    return found


def report_as_dict(judged: list[Judged]) -> dict[str, Plain]:
    """The report as JSON: counts, and the list."""
    return {
        "submissions": len(judged),
        "counts": {worth.name.lower(): number for worth, number in counts(judged).items()},
        "jobs": [each.as_dict() for each in judged if each.worth in LISTED],
    }


def _judged(decision: Mapping[str, object], look: Look) -> Judged:
    named = _text(decision, "prediction")
    prediction, verdict = full_name(named) if named else "", _text(decision, "verdict").removeprefix("VERDICT_")
    stored = look(prediction) if prediction else None
    state, observed = (stored.state, stored.observed_device_bytes) if stored is not None else ("", 0)
    card = stored.capacity.total_bytes if stored is not None else 0
    return Judged(
        time=_text(decision, "time"),
        cluster=_text(decision, "cluster"),
        user=_text(decision, "user") or _text(decision, "uid"),
        job_name=_text(decision, "job_name"),
        partition=_text(decision, "partition"),
        mode=_text(decision, "mode"),
        verdict=verdict,
        outcome=_text(decision, "outcome"),
        prediction=prediction,
        bound_bytes=_number(decision, "bound_bytes"),
        usable_bytes=_number(decision, "usable_bytes"),
        observed_bytes=observed,
        state=state,
        worth=_worth(verdict, state, is_nearly_full=card > 0 and observed >= NEARLY_FULL * card),
    )


def _worth(verdict: str, state: str, *, is_nearly_full: bool) -> Worth:
    """A job that failed with its card nearly full counts as one that ran out of memory."""
    if verdict not in ("ADMIT", "REJECT"):
        return Worth.NOT_CHECKED
    ran_out = state == "oom" or (state == "failed" and is_nearly_full)
    if not ran_out and state != "finished":
        return Worth.UNKNOWN
    if verdict == "REJECT":
        return Worth.STOPPED if ran_out else Worth.WRONGLY_REFUSED
    return Worth.MISSED if ran_out else Worth.RIGHT


def _text(decision: Mapping[str, object], name: str) -> str:
    value = decision.get(name, "")
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""


def _number(decision: Mapping[str, object], name: str) -> int:
    value = decision.get(name, 0)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _moment(text: str) -> float:
    """Seconds since the epoch; 0 for what is no time."""
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return 0.0
