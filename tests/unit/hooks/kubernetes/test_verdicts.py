"""What the submitter reads of a judgement, where a review of a real service does not come to it."""

from __future__ import annotations

import pytest
from tests.unit.hooks.test_message import an_answer

from peakgate.hooks.asking import BESIDE, SERVICE, Judgement
from peakgate.hooks.kubernetes.annotations import OWN_WORDS, TRY
from peakgate.hooks.kubernetes.judging import Judged
from peakgate.hooks.kubernetes.rules import Mode
from peakgate.hooks.kubernetes.verdicts import LONGEST_LINE, UNSERVED, Case, decide, not_judged
from peakgate.v1.prediction_pb2 import Verdict
from peakgate.v1.training_job_pb2 import TrainingJob

FILE = "what ds_z3.json says (Job/llama-3-8b-of-a-long-name: containers[0].args --deepspeed)"


@pytest.mark.parametrize(("by", "want"), [(SERVICE, True), (BESIDE, False)])
def test_a_try_is_offered_by_whoever_can_grant_it(by: str, *, want: bool) -> None:
    """The one beside the webhook keeps nothing, and grants none."""
    answer = an_answer(prediction="" if by == BESIDE else "predictions/0123456789abcdef0123456789abcdef")
    told = decide(Case(judged=Judged(judgement=Judgement(answer=answer, by=by)), mode=Mode.enforce)).answer
    assert not told.is_allowed
    assert (TRY in told.message) is want
    assert (UNSERVED in told.message) is not want


@pytest.mark.parametrize(("unread", "want"), [(FILE, True), ("the method rlhf of a script of its own (Job/x)", False)])
def test_a_file_that_was_not_read_comes_with_what_to_do(unread: str, *, want: bool) -> None:
    """However long the reason is; of a method there is nothing to be read."""
    reason = f"unread: {unread}; what can be computed needs 92.1 GB, 64.2 GB of it model states, against the 85.0 GB usable of h100-80gb"
    answer = an_answer(verdict=Verdict.VERDICT_UNDECIDED, reason=reason)
    judged = Judged(judgement=Judgement(answer=answer, by=SERVICE), job=TrainingJob(unread=[unread]))
    (line,) = decide(Case(judged=judged, mode=Mode.warn)).answer.warnings
    assert line.startswith(f"peakgate: cannot be judged: unread: {unread[:20]}")
    assert len(line) <= LONGEST_LINE
    assert ("readConfigMaps" in line and line.endswith("unread: [], in the annotation peakgate.io/spec")) is want


def test_what_is_not_judged_says_how_to_state_it() -> None:
    """However long the problem is."""
    (line,) = not_judged(Mode.warn, "a problem " * 60).answer.warnings
    assert line.endswith(f"; {OWN_WORDS}")
    assert len(line) <= LONGEST_LINE
