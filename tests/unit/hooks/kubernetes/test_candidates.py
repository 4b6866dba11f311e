"""What follows from the answers for all that a pod may get."""

from __future__ import annotations

from dataclasses import replace

import pytest

from peakgate.hooks.kubernetes.candidates import Candidate, Cards, concluded
from peakgate.v1.prediction_pb2 import Verdict

ADMIT, REJECT, OPEN = Verdict.VERDICT_ADMIT, Verdict.VERDICT_REJECT, Verdict.VERDICT_UNDECIDED
SMALL = Candidate(gpu="t4-16gb", labels=(("pool", "small"),), memory_source="pool=small")
BIG = Candidate(gpu="h100-80gb", labels=(("pool", "big"),), memory_source="pool=big")


@pytest.mark.parametrize(
    ("verdicts", "want"),
    [
        ((ADMIT, ADMIT), ADMIT),
        ((REJECT, REJECT), REJECT),
        ((REJECT, ADMIT), OPEN),
        ((REJECT, OPEN), OPEN),
        ((OPEN, OPEN), OPEN),
        ((OPEN, ADMIT), OPEN),
    ],
)
def test_only_what_fits_nowhere_is_refused(verdicts: tuple[Verdict.ValueType, ...], want: Verdict.ValueType) -> None:
    """Two candidates, each with its own answer."""
    assert concluded(Cards(candidates=(SMALL, BIG)), verdicts).verdict == want


def test_the_selector_that_fits_is_named() -> None:
    """Some fit and some do not: the submitter is told how to pick."""
    told = concluded(Cards(candidates=(SMALL, BIG)), (REJECT, ADMIT))
    assert told.reason == "it fits on h100-80gb and not for sure on t4-16gb, and may get either: pick the first with nodeSelector pool=big"
    assert told.shown == BIG


@pytest.mark.parametrize(
    ("verdicts", "want"), [((ADMIT, ADMIT), ADMIT), ((REJECT, REJECT), REJECT), ((REJECT, ADMIT), OPEN), ((REJECT, OPEN), OPEN)]
)
def test_pods_on_different_cards_are_refused_only_where_none_fits(verdicts: tuple[Verdict.ValueType, ...], want: Verdict.ValueType) -> None:
    """The rank that needs the most runs on one of them, nobody knows which; so one that fits leaves it open, and it is said how to mend."""
    told = concluded(Cards(candidates=(SMALL, BIG), is_mixed=True), verdicts)
    assert told.verdict == want
    if verdicts == (REJECT, ADMIT):
        assert told.reason.endswith("t4-16gb, and its pods run on both: give all of them the first with nodeSelector pool=big")


def test_a_shared_card_is_never_promised_but_can_be_too_small() -> None:
    """What does not fit on the whole card does not fit beside others either."""
    shared = replace(SMALL, is_shared=True)
    assert concluded(Cards(candidates=(shared,)), (ADMIT,)).verdict == OPEN
    assert "share in time" in concluded(Cards(candidates=(shared,)), (ADMIT,)).reason
    assert concluded(Cards(candidates=(shared,)), (REJECT,)).verdict == REJECT


def test_a_lower_bound_is_never_refused_but_can_be_enough() -> None:
    """A larger card may be given."""
    least = replace(BIG, is_least=True)
    assert concluded(Cards(candidates=(least,)), (REJECT,)).verdict == OPEN
    assert concluded(Cards(candidates=(least,)), (ADMIT,)).verdict == ADMIT


def test_an_open_list_is_never_refused() -> None:
    """An autoscaler may bring a card on which it fits."""
    told = concluded(Cards(candidates=(SMALL,), is_complete=False), (REJECT,))
    assert (told.verdict, told.reason) == (OPEN, "it may still get another GPU: nodes that match may be added")


def test_without_a_candidate_nobody_is_refused() -> None:
    """The doubt is the reason."""
    told = concluded(Cards(doubt="no node matches"), ())
    assert (told.verdict, told.reason, told.shown) == (OPEN, "no node matches", None)


@pytest.mark.parametrize(("verdicts", "want"), [((REJECT, OPEN), BIG), ((OPEN, REJECT), SMALL), ((OPEN, OPEN), SMALL)])
def test_what_cannot_be_judged_is_shown_where_it_cannot(verdicts: tuple[Verdict.ValueType, ...], want: Candidate) -> None:
    """Not the answer for a card on which it surely does not fit."""
    assert concluded(Cards(candidates=(SMALL, BIG)), verdicts).shown == want
