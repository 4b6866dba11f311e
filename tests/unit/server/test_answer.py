"""What is stored of an answer."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

from peakgate.memory.job import Job
from peakgate.memory.prediction import TimelinePoint
from peakgate.server.answer import ANSWER_LIMIT_BYTES, brief, build_answer, pack, unpack
from peakgate.server.assess import Assessor
from peakgate.server.decide import Decision, Ground, Verdict
from peakgate.v1 import prediction_pb2 as pb
from peakgate.v1.prediction_pb2 import VERDICT_REJECT, LedgerLine, Peak, PredictResponse, Suggestion


def an_answer(suggestions: int = 2) -> PredictResponse:
    """An answer of the usual shape; random text cannot be compressed away."""
    chance = random.Random(1)
    noise = "".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=200))
    return PredictResponse(
        verdict=VERDICT_REJECT,
        reason="activations: too large",
        peak=Peak(required_bytes=7),
        ledger=[LedgerLine(category="activations", item="saved", bytes=7)],
        timeline=[pb.TimelinePoint(phase="forward", label=str(index), allocated_bytes=index) for index in range(200)],
        suggestions=[Suggestion(title=noise[index:] + str(index)) for index in range(suggestions)],
    )


def a_point(phase: str, label: str) -> TimelinePoint:
    """A moment of which only the name matters."""
    return TimelinePoint(phase=phase, label=label, allocated_bytes=0)


def test_layers_are_numbered_in_the_order_of_the_forward_pass(assessor: Assessor, a_job: Callable[..., Job]) -> None:
    """The backward pass meets the last one first; each pass begins anew, and what is no layer keeps its name."""
    passes = [("forward", "embedding"), *[("forward", "layer")] * 2, ("loss", "loss"), *[("backward", "layer")] * 2]
    assessment = assessor.assess(a_job())
    prediction = replace(assessment.prediction, timeline=tuple(a_point(*each) for each in passes * 2))
    decision = Decision(verdict=Verdict.ADMIT, ground=Ground.FITS)
    answer = build_answer(replace(assessment, prediction=prediction), decision, (), calibration_version="")
    want_labels = ["embedding", "layer 1", "layer 2", "loss", "layer 2", "layer 1"]
    assert [point.label for point in answer.timeline] == want_labels * 2


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
