"""A job that may get several kinds of card, of which not all hold it: which one it should ask for, and asks for where the table of cards
says `pin`. Pure."""

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
    """Of a job that names no type and is too large for the least card: the least of the types it may get that holds it, or empty."""
    if len(choice.cards) < 2 or answer.verdict not in (Verdict.VERDICT_REJECT, Verdict.VERDICT_ADMIT):
        return ""
    least = cards.least_that_holds(choice, _needed_bytes(answer))
    return least.label if least not in (None, choice.cards[0]) and pinned(submission, least) else ""


def card_too_small(cards: Cards, choice: Choice, answer: PredictResponse) -> str:
    """Of a job that fits the card that counts: the least one that it may get as well, where that is known not to hold it; else empty."""
    if len(choice.cards) < 2 or answer.verdict != Verdict.VERDICT_ADMIT:
        return ""
    least = choice.cards[0]
    return (least.name or least.label) if 0 < cards.bytes_of(least) < _needed_bytes(answer) else ""


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
