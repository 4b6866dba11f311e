"""What is stored of an answer."""

from __future__ import annotations

import random

from peakgate.server.answer import ANSWER_LIMIT_BYTES, brief, pack, unpack
from peakgate.v1.prediction_pb2 import VERDICT_REJECT, LedgerLine, Peak, PredictResponse, Suggestion, TimelinePoint


def an_answer(suggestions: int = 2) -> PredictResponse:
    """An answer of the usual shape; random text cannot be compressed away."""
    chance = random.Random(1)
    noise = "".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=200))
    return PredictResponse(
        verdict=VERDICT_REJECT,
        reason="activations: too large",
        peak=Peak(required_bytes=7),
        ledger=[LedgerLine(category="activations", item="saved", bytes=7)],
        timeline=[TimelinePoint(phase="forward", label=str(index), allocated_bytes=index) for index in range(200)],
        suggestions=[Suggestion(title=noise[index:] + str(index)) for index in range(suggestions)],
    )


def test_everything_but_the_timeline_comes_back() -> None:
    """The timeline is computed again."""
    want_answer = an_answer()
    want_answer.ClearField("timeline")
    assert unpack(pack(an_answer())) == want_answer


def test_a_large_answer_keeps_what_matters_and_stays_in_its_place() -> None:
    """Suggestions go first: they can be computed again."""
    answer = an_answer()
    answer.suggestions.extend(Suggestion(title=random.Random(index).randbytes(90).hex()) for index in range(100))
    packed = pack(answer)
    assert len(packed) <= ANSWER_LIMIT_BYTES
    assert unpack(packed).reason == answer.reason
    assert unpack(packed).ledger == answer.ledger


def test_a_brief_answer_has_no_timeline_and_no_suggestions() -> None:
    """And the whole one is left as it was."""
    answer = an_answer()
    short = brief(answer)
    assert (len(short.timeline), len(short.suggestions), len(short.ledger)) == (0, 0, 1)
    assert len(answer.timeline) == 200
