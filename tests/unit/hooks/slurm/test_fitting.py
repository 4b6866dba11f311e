"""A job document on the cards that the scheduler is asked for."""

from __future__ import annotations

import pytest
from tests.unit.hooks.slurm.building import GB, a_job, a_submission, an_answer, rejected

from peakgate.hooks.slurm.card_table import CardTable, Row, Untyped
from peakgate.hooks.slurm.cards import Card, Cards
from peakgate.hooks.slurm.fitting import is_as_asked, on_request
from peakgate.hooks.slurm.steering import card_too_small, steering_of, type_that_holds


def test_the_schedulers_word_is_the_last() -> None:
    """Card, count and GPUs a node; the world shrinks with the cards."""
    fitted = on_request(a_job(), a_submission(), Card(name="a100-40gb"))
    assert (fitted.gpu.type, fitted.gpu.count, fitted.node.gpus, fitted.parallelism.world_size) == ("a100-40gb", 2, 2, 2)
    assert not is_as_asked(a_job(), fitted)


def test_a_world_of_its_own_stays() -> None:
    """A launch that starts fewer processes than it has cards."""
    fitted = on_request(a_job(parallelism__world_size=4), a_submission(tres_per_node="gres:gpu:h100:4"), None)
    assert (fitted.parallelism.world_size, fitted.gpu.count, fitted.gpu.type) == (4, 4, "h100-80gb")


def test_bytes_stand_where_a_card_has_no_name() -> None:
    """And the other way round."""
    fitted = on_request(a_job(gpu__memory_bytes=1), a_submission(), Card(memory_bytes=48 * GB))
    assert (fitted.gpu.HasField("type"), fitted.gpu.memory_bytes) == (False, 48 * GB)
    assert not on_request(fitted, a_submission(), Card(name="l4-24gb")).gpu.HasField("memory_bytes")


def test_a_document_that_was_made_for_the_request_is_as_asked() -> None:
    """Its prediction holds."""
    job = a_job(gpu__count=2, parallelism__world_size=2, node__gpus=2)
    assert is_as_asked(job, on_request(job, a_submission(), Card(name="h100-80gb")))


ROWS = (Row(type="small", gpu="a100-40gb"), Row(type="large", gpu="a100-80gb"), Row(type="huge", gpu="h200-141gb"))


@pytest.mark.parametrize(
    ("untyped", "need", "tres", "want"),
    [
        (Untyped.pin, 60, "gres:gpu:2", {"tres_per_node": "gres:gpu:large:2"}),
        (Untyped.pin, 100, "gres:gpu:2", {"tres_per_node": "gres:gpu:huge:2"}),
        (Untyped.pin, 30, "gres:gpu:2", {}),
        (Untyped.pin, 60, "gres:gpu:huge:2", {}),
        (Untyped.worst, 60, "gres:gpu:2", {}),
        (Untyped.best, 60, "gres:gpu:2", {}),
    ],
)
def test_a_job_is_steered_to_the_least_card_that_holds_it(untyped: Untyped, need: int, tres: str, want: dict[str, str]) -> None:
    """Only where the table says `pin`, the request names no type, and some card that it may get is too small."""
    cards, submission = Cards(table=CardTable(untyped=untyped, cards=ROWS)), a_submission(tres_per_node=tres)
    choice = cards.choose(submission)
    assert dict(steering_of(submission, cards, choice, an_answer(need=need, card=141)).sets) == want
    assert not steering_of(submission, cards, choice, rejected()).sets


@pytest.mark.parametrize(
    ("untyped", "need", "tres", "want"),
    [
        (Untyped.worst, 60, "gres:gpu:2", "large"),
        (Untyped.worst, 100, "gres:gpu:2", "huge"),
        (Untyped.best, 200, "gres:gpu:2", ""),
        (Untyped.worst, 60, "gres:gpu:small:2", ""),
    ],
)
def test_a_rejected_job_without_a_type_has_one_that_holds_it(untyped: Untyped, need: int, tres: str, want: str) -> None:
    """The least one, where there is one and none was named."""
    cards, submission = Cards(table=CardTable(untyped=untyped, cards=ROWS)), a_submission(tres_per_node=tres)
    choice = cards.choose(submission)
    assert type_that_holds(submission, cards, choice, an_answer("REJECT", need=need, card=40)) == want
    assert type_that_holds(submission, cards, choice, an_answer(need=30, card=40)) == ""


@pytest.mark.parametrize(
    ("rows", "need", "tres", "want"),
    [
        (ROWS, 60, "gres:gpu:2", ("large", "a100-40gb")),
        (ROWS, 100, "gres:gpu:2", ("huge", "a100-40gb")),
        (ROWS, 30, "gres:gpu:2", ("", "")),
        (ROWS, 60, "gres:gpu:large:2", ("", "")),
        ((Row(type="", nodes="a1", gpu="a100-40gb"), Row(type="", nodes="a2", gpu="a100-80gb")), 60, "gres:gpu:2", ("", "a100-40gb")),
        ((Row(type="odd", gpu="unheard-of"), Row(type="large", gpu="a100-80gb")), 60, "gres:gpu:2", ("large", "")),
    ],
)
def test_an_admitted_job_knows_the_card_that_is_too_small(rows: tuple[Row, ...], need: int, tres: str, want: tuple[str, str]) -> None:
    """By default the largest counts; which type to ask for, where it may, and which card it must not get, where that is known."""
    cards, submission = Cards(table=CardTable(cards=rows)), a_submission(tres_per_node=tres)
    choice, answer = cards.choose(submission), an_answer(need=need, card=141)
    assert (type_that_holds(submission, cards, choice, answer), card_too_small(cards, choice, answer)) == want
    assert card_too_small(cards, choice, an_answer("REJECT", need=200, card=141)) == ""
