"""From a judgement to the state of a check."""

from __future__ import annotations

import pytest

from peakgate.hooks.kubernetes.candidates import Candidate, Conclusion
from peakgate.hooks.kubernetes.kueue.checks import LONGEST_MESSAGE, Check, CheckMode
from peakgate.hooks.kubernetes.kueue.deciding import Judged, decided, settled
from peakgate.v1.prediction_pb2 import PredictResponse, Suggestion, TryAnyway, Verdict

ENFORCE, WARN = Check(name="c", mode=CheckMode.enforce), Check(name="c", mode=CheckMode.warn)
REJECTED = PredictResponse(
    prediction="predictions/1",
    verdict=Verdict.VERDICT_REJECT,
    reason="activations: 61.0 GB",
    suggestions=[Suggestion(title="halve the batch", fits=True, bound_bytes=10**10)],
)


def test_a_rejection_says_what_would_help_and_where_the_rest_stands() -> None:
    """The message is what a submitter finds in the workload's events."""
    told = decided(ENFORCE, Judged(answer=REJECTED), 0)
    assert (told.state, told.reason) == ("Rejected", "rejected")
    assert told.message == "activations: 61.0 GB; cheapest change: halve the batch (then 10.0 GB); more: peakgate explain 1"


def test_a_change_that_the_reason_names_is_not_said_again() -> None:
    """The service's own reason ends with it where it was looked for."""
    reason = "activations: 61.0 GB; halve the batch (batch.micro_batch_size=1) makes it fit with 10.0 GB"
    answer = PredictResponse(verdict=Verdict.VERDICT_REJECT, reason=reason, suggestions=REJECTED.suggestions)
    assert decided(ENFORCE, Judged(answer=answer), 0).message == reason


def test_a_try_that_was_granted_runs() -> None:
    """The service counts it against its user's budget."""
    answer = PredictResponse(verdict=Verdict.VERDICT_REJECT, reason="r", try_anyway=TryAnyway(granted=True))
    assert decided(ENFORCE, Judged(answer=answer), 0).reason == "tried"
    answer.try_anyway.granted = False
    assert decided(ENFORCE, Judged(answer=answer), 0).state == "Rejected"


@pytest.mark.parametrize(
    ("retries", "want"), [(0, ("Retry", 60)), (1, ("Retry", 120)), (2, ("Retry", 240)), (3, ("Ready", None)), (99, ("Ready", None))]
)
def test_only_an_absence_is_retried_and_at_most_three_times(retries: int, want: tuple[str, int | None]) -> None:
    """Later each time."""
    told = decided(ENFORCE, Judged(is_away=True), retries)
    assert (told.state, told.requeue_seconds) == want


def test_what_is_not_read_whole_is_not_rejected() -> None:
    """A config file that is not at hand may say otherwise."""
    told = decided(ENFORCE, Judged(answer=REJECTED, is_partial=True), 0)
    assert (told.state, told.reason) == ("Ready", "would_reject")
    assert "a part of the launch is not in the workload" in told.message


def test_the_conclusion_over_all_cards_counts() -> None:
    """It does not fit on the card that is shown, and may get another one."""
    conclusion = Conclusion(verdict=Verdict.VERDICT_UNDECIDED, shown=Candidate(gpu="t4-16gb"), reason="it may get either")
    told = decided(ENFORCE, Judged(answer=REJECTED, conclusion=conclusion), 0)
    assert (told.state, told.reason, told.message) == ("Ready", "undecided", "cannot be judged: it may get either")


def test_a_message_fits_into_an_event_and_moves_no_cursor() -> None:
    """Names that users chose are spelled out."""
    answer = PredictResponse(verdict=Verdict.VERDICT_REJECT, reason="x\x1b[2J" + "long " * 1000)
    told = decided(ENFORCE, Judged(answer=answer), 0)
    assert len(told.message) <= LONGEST_MESSAGE
    assert "\x1b" not in told.message


def test_a_check_that_is_off_or_released_looks_at_nothing() -> None:
    """The break-glass comes before everything."""
    assert settled(WARN) is None
    off = settled(Check(name="c", mode=CheckMode.off))
    released = settled(Check(name="c", mode=CheckMode.enforce, release="fire"))
    assert off is not None
    assert released is not None
    assert [(each.state, each.reason) for each in (off, released)] == [("Ready", "off"), ("Ready", "released")]
