"""Users whose jobs need other than they declare, judged against their peers."""

from __future__ import annotations

import json

import pytest

from peakgate.calibration.users import MIN_PEERS, MIN_ROWS, Users


def users_after(*rows: tuple[str, float], framework: str = "fsdp") -> Users:
    """Users after these (user, score)."""
    users = Users()
    for user, score in rows:
        users.see(user, framework, score)
    return users


PEERS = [(f"user-{index}", 0.5 if index % 2 else -0.5) for index in range(MIN_PEERS)]


@pytest.mark.parametrize("score", [5.0, -5.0])
def test_a_user_who_is_far_off_is_suspect(score: float) -> None:
    """Above as well as below; four rows are needed."""
    mallory = [("mallory", score)] * MIN_ROWS
    assert not users_after(*PEERS, *mallory[1:]).is_suspect("mallory", "fsdp")
    assert users_after(*PEERS, *mallory).is_suspect("mallory", "fsdp")


def test_when_everybody_is_off_it_is_drift() -> None:
    """Nobody is blamed for an upgrade."""
    rows = [(f"user-{index % 5}", 5.0) for index in range(40)]
    assert not any(users_after(*rows).is_suspect(f"user-{index}", "fsdp") for index in range(5))


def test_without_peers_nobody_is_judged() -> None:
    """The only user of a framework is its level."""
    alone = users_after(*[("ada", 5.0)] * 30)
    assert not alone.is_suspect("ada", "fsdp")
    assert not users_after(*PEERS, *[("ada", 5.0)] * 30).is_suspect("ada", "ddp")


def test_a_user_can_be_trusted_again() -> None:
    """The moving average follows the newest jobs."""
    assert not users_after(*PEERS, *[("ada", 5.0)] * 6, *[("ada", 0.0)] * 6).is_suspect("ada", "fsdp")


def test_one_wild_row_makes_no_suspect() -> None:
    """A score counts for six at most: among ten honest rows that is an average below 1."""
    assert not users_after(*PEERS, *[("ada", 0.0)] * 10, ("ada", 1e6)).is_suspect("ada", "fsdp")


def test_only_those_above_are_bounded_higher() -> None:
    """By their mean score; a user who asks for too much is not rewarded."""
    users = users_after(*PEERS, *[("mallory", 5.0)] * 8, *[("waster", -5.0)] * 8)
    assert users.suspects() == {("mallory", "fsdp"): pytest.approx(5.0)}


def test_too_many_suspects_say_more_about_the_levels() -> None:
    """One of ten users is kept out of the pool; three of ten are not."""
    names = [f"user-{index}" for index in range(10)]
    one = users_after(*[("user-0", 5.0)] * 5)
    three = users_after(*[(f"user-{index % 3}", 5.0) for index in range(15)])
    assert (one.kept_out_of_pool(names), three.kept_out_of_pool(names)) == (frozenset({"user-0"}), frozenset())


def test_the_unknown_user_is_nobody() -> None:
    """Rows without a user are not one person's."""
    assert not users_after(*PEERS, *[("", 5.0)] * 30).is_suspect("", "fsdp")


def test_a_leaning_is_a_shrunken_mean() -> None:
    """Of n rows at 1 it is nearly n/(n + 4); a wild row counts for 2.5; the unknown user has none."""
    users = Users()
    assert users.leaning("ada") == 0.0
    for _ in range(4):
        users.settle("ada", 1.0)
    assert users.leaning("ada") == pytest.approx(0.5, rel=0.02)
    for _ in range(400):
        users.settle("ada", 100.0)
        users.settle("", 100.0)
    assert users.leaning("ada") == pytest.approx(2.5 * 50 / 54, rel=0.01)
    assert users.leanings().keys() == {"ada"}


def test_the_state_round_trips() -> None:
    """Through JSON, with who is suspect."""
    users = users_after(*PEERS, *[("mallory", 5.0 / 3)] * 3, *[("mallory", 20.0)] * 8)
    users.settle("ada", 1 / 3)
    again = Users.from_state(json.loads(json.dumps(users.state())))
    assert again.state() == users.state()
    assert again.leanings() == users.leanings()
    assert again.suspects() == users.suspects() != {}
