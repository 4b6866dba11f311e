"""What is said of a try, and what came of it; the budget itself is tested on real databases."""

from __future__ import annotations

import uuid
from dataclasses import replace

import pytest
from tests.integration.service.rows import an_observation
from tests.unit.server.stored import a_prediction

from peakgate.server.clock import DAY_US
from peakgate.server.predictor import new_name
from peakgate.server.store.records import REQUEST_CHARACTERS, ObservationRow, Spent, StoredPrediction, TryRow
from peakgate.server.tries import granted, name_of_request, outcome_of, try_message, used_up

NAME = "predictions/0"
MINUTE_US = 60_000_000


def stored(*rows: ObservationRow, state: str = "") -> StoredPrediction:
    """A prediction with what was observed of it."""
    return StoredPrediction(row=a_prediction(NAME), state=state, observed_device_bytes=0, observations=rows)


LOWER = an_observation(NAME, kind="lower", upper_bytes=None)


@pytest.mark.parametrize(
    ("found", "want"),
    [
        (stored(), "unknown"),
        (stored(state="running"), "unknown"),
        (stored(state="finished"), "unknown"),
        (stored(an_observation(NAME, kind="exact"), state="finished"), "fitted"),
        (stored(an_observation(NAME, kind="exact")), "fitted"),
        (stored(replace(LOWER, reason="OUT_OF_MEMORY")), "oom"),
        (stored(an_observation(NAME), replace(LOWER, reason="OUT_OF_MEMORY")), "oom"),
        (stored(state="oom"), "oom"),
        (stored(replace(LOWER, reason="CUT_SHORT"), state="failed"), "unknown"),
        (stored(replace(LOWER, reason="END_UNKNOWN"), state="finished"), "unknown"),
        (stored(replace(LOWER, reason="NO_SECOND_STEP"), state="finished"), "unknown"),
        (stored(replace(LOWER, reason="LENGTH_UNKNOWN"), state="finished"), "fitted"),
        (stored(replace(LOWER, reason="CARD_FULL", kind="dropped", learned=False), state="finished"), "fitted"),
        (stored(an_observation(NAME, kind="dropped", learned=False, reason="FAR_BELOW"), state="finished"), "fitted"),
    ],
)
def test_what_came_of_a_job(found: StoredPrediction, want: str) -> None:
    """An out-of-memory in any attempt counts; whoever was not seen to the end is unknown; a row that was kept out still fitted."""
    assert outcome_of(found) == want


def test_without_a_try_there_is_nothing_to_say() -> None:
    """And with one its reason and its moment."""
    assert try_message(stored()) is None
    tried = TryRow(prediction=NAME, user="c/1", reason="why not", created_us=2_000_000)
    message = try_message(replace(stored(state="oom"), tried=tried))
    assert message is not None
    assert (message.reason, message.create_time.seconds, message.outcome) == ("why not", 2, "oom")


def test_the_last_one_says_when_there_is_another() -> None:
    """While some are left there is nothing to wait for."""
    first = granted("c/1", Spent(prediction=NAME, created_us=(5,)), limit=2)
    last = granted("c/1", Spent(prediction=NAME, created_us=(5, 9)), limit=2)
    assert (first.granted, first.left, first.HasField("next_time")) == (True, 1, False)
    assert (last.granted, last.left, last.next_time.ToMicroseconds()) == (True, 0, 5 + DAY_US)


@pytest.mark.parametrize("moments", [(7 * MINUTE_US,), (3, 7 * MINUTE_US), (1, 2, 7 * MINUTE_US)])
def test_a_smaller_budget_than_was_spent_waits_for_the_right_one(moments: tuple[int, ...]) -> None:
    """The operator has lowered it to one: the next is free a day after the newest. The minute that is said is never too early."""
    said = used_up("c/1", Spent(prediction="", created_us=moments), limit=1)
    assert (said.granted, said.left, said.limit) == (False, 0, 1)
    assert said.next_time.ToMicroseconds() == 7 * MINUTE_US + DAY_US
    assert "free at 1970-01-02 00:07 UTC" in said.message
    later = used_up("c/1", Spent(prediction="", created_us=(7 * MINUTE_US + 1,)), limit=1)
    assert "free at 1970-01-02 00:08 UTC" in later.message


def test_a_name_that_a_request_made_is_a_name_like_any() -> None:
    """A UUID of version 7 with its time in front; the same request gives the same end, another one another."""
    name = new_name()
    found, again, other = name_of_request(name, "one"), name_of_request(new_name(), "one"), name_of_request(name, "two")
    parsed = uuid.UUID(found.removeprefix("predictions/"))
    assert (parsed.version, parsed.variant) == (7, uuid.RFC_4122)
    assert found[:-REQUEST_CHARACTERS] == name[:-REQUEST_CHARACTERS]
    assert found[-REQUEST_CHARACTERS:] == again[-REQUEST_CHARACTERS:] != other[-REQUEST_CHARACTERS:]
