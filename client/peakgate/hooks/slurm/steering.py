"""A job that may get several kinds of card asks for the least one that holds it, where the table of cards says `pin`. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from peakgate.hooks.slurm.card_table import Untyped
from peakgate.hooks.slurm.cards import Cards, Choice, pinned
from peakgate.hooks.slurm.submission import Submission
from peakgate.v1.prediction_pb2 import PredictResponse, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Steering:
    """Fields that are changed, and the type of card that they ask for then."""

    sets: Mapping[str, str] = field(default_factory=dict)
    label: str = ""


def type_that_holds(submission: Submission, cards: Cards, choice: Choice, answer: PredictResponse) -> str:
    """Of a job that names no type and is too large for the card that counts: the least of the types it may get that holds it, or empty."""
    if len(choice.cards) < 2 or answer.verdict != Verdict.VERDICT_REJECT:
        return ""
    least = cards.least_that_holds(choice, _needed_bytes(answer))
    return least.label if least is not None and pinned(submission, least) else ""


def _needed_bytes(answer: PredictResponse) -> int:
    """What the driver keeps of the card that was judged is needed too."""
    return answer.peak.bound_bytes + answer.capacity.total_bytes - answer.capacity.usable_bytes


def steering_of(submission: Submission, cards: Cards, choice: Choice, answer: PredictResponse) -> Steering:
    """What steers an admitted job; nothing where all its cards hold it."""
    if choice.policy is not Untyped.pin or len(choice.cards) < 2 or answer.verdict != Verdict.VERDICT_ADMIT:
        return Steering()
    least = cards.least_that_holds(choice, _needed_bytes(answer))
    if least is None or least == choice.cards[0]:
        return Steering()
    sets = pinned(submission, least)
    return Steering(sets=sets, label=least.label) if sets else Steering()
