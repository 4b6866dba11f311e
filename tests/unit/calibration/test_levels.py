"""Frameworks and groups: who learns what of a row, when certainty goes, which versions were met."""

from __future__ import annotations

import json

import pytest
from tests.unit.calibration.builders import GB, a_history, a_subject, an_observation

from peakgate.calibration.drift import RENEWED
from peakgate.calibration.levels import MIN_STATISTICS_ROWS, Levels
from peakgate.calibration.node import RENEWAL_ROWS, STALE_SECONDS, Node, node_from
from peakgate.calibration.observation import Observation
from peakgate.calibration.subject import Subject
from peakgate.calibration.versions import BUCKET, NAMES, OWN_ROWS, Versions


def levels_after(*observations: Observation) -> Levels:
    """Levels that have learned these."""
    levels = Levels()
    for observation in observations:
        levels.meet(observation)
        if observation.exact:
            levels.learn(observation, levels.left_over(observation))
        levels.renew(observation.subject)
    return levels


def expected_gb(levels: Levels, subject: Subject) -> float:
    """What the levels add to the prior."""
    return -levels.left_over(an_observation(subject.required_bytes / GB, of=subject))


def test_what_was_learned_is_shared_with_siblings_and_less_with_strangers() -> None:
    """Jobs that needed 1 GB more raise their group most, a sibling of the same framework less, another framework not at all."""
    levels = levels_after(*a_history(60, shift_gb=1.0))
    own, sibling, stranger = (
        expected_gb(levels, a_subject(group=group, framework=framework))
        for group, framework in (("h100/fsdp/one", "fsdp"), ("a100/fsdp/one", "fsdp"), ("h100/ddp/one", "ddp"))
    )
    assert own == pytest.approx(1.0, abs=0.25)
    assert own > sibling > 0.4
    assert stranger == 0.0


def test_a_wild_row_is_bounded() -> None:
    """Beyond two scores the weight falls as the distance grows: ten times as far off pulls a settled level about as hard."""
    rows, subject = a_history(100), a_subject()
    before, moves = expected_gb(levels_after(*rows), subject), []
    for score in (2.0, 20.0):
        levels = levels_after(*rows, an_observation(40 + before + score * subject.scale, at=500, of=subject))
        moves.append(expected_gb(levels, subject) - before)
    assert 0 < moves[1] < 1.5 * moves[0]


def test_a_new_version_costs_certainty_once() -> None:
    """While a cluster is upgraded node by node both versions run: only the first row that shows the new one to be everybody's widens."""
    old, *new = a_subject(version="2.7"), a_subject(version="2.8"), a_subject(version="2.8", user="eve")
    levels = levels_after(*(an_observation(at=at, of=old) for at in range(1, OWN_ROWS + 1)))
    levels.meet(an_observation(at=20, of=new[0]))
    levels.renew(new[0])
    assert not levels.views()["framework fsdp"].alarmed
    levels.meet(an_observation(at=21, of=new[1]))
    levels.renew(new[1])
    assert levels.alarms == 2
    assert levels.views()["framework fsdp"].alarmed
    for at in range(22, 30):
        levels.meet(an_observation(at=at, of=old if at % 2 else new[0]))
    assert levels.alarms == 2


def test_a_known_version_is_news_of_each_level_at_once() -> None:
    """What one framework runs already widens another at its first row there."""
    levels = levels_after()
    for at, (framework, version) in enumerate((("fsdp", "2.7"), ("ddp", "2.7"), ("fsdp", "2.8"), ("ddp", "2.8")), start=1):
        for user in ("ada", "eve") if framework == "fsdp" else ("ada",):
            levels.meet(an_observation(at=at, of=a_subject(version=version, user=user, framework=framework, group=framework)))
    assert levels.moved() == dict.fromkeys(("framework ddp", "framework fsdp", "group ddp", "group fsdp"), RENEWED)


def test_versions_are_remembered_up_to_a_number() -> None:
    """One of the bucket is nobody's; those that ran longest ago are forgotten."""
    node = Node.new("group g")
    for number in range(1, NAMES + 3):
        node.meet(number, 1.0)
        node.meet(BUCKET, 1.0)
    assert node.versions == tuple(range(3, NAMES + 3))
    node.meet(3, 1.0)
    assert (node.versions[0], node.versions[-1]) == (4, 3)


def test_versions_side_by_side_cost_certainty_once_each() -> None:
    """As many pairs of torch and CUDA as are known, run in turn: an alarm of each level for each at most, and none later."""
    levels = Levels()
    subjects = [a_subject(version=f"torch 2.{index % NAMES}", user=f"user-{index % 7}") for index in range(20 * NAMES)]
    for at, subject in enumerate(subjects):
        levels.meet(an_observation(at=at, of=subject))
        if at == 3 * NAMES:
            assert levels.alarms == 2 * (NAMES - 1)
    assert levels.alarms == 2 * (NAMES - 1)


def test_a_version_with_every_job_is_news_of_nobody_else() -> None:
    """Nightly builds of twenty users: no level is widened, and what the others run is not forgotten for them."""
    levels = Levels()
    for at in range(1000):
        levels.meet(an_observation(at=at, of=a_subject(version="torch 2.9", user=f"user-{at % 7}")))
        levels.meet(an_observation(at=at, of=a_subject(version=f"torch 2.10.dev{at}", user=f"nightly-{at % 20}")))
    assert levels.alarms == 0
    assert set(levels.versions.numbers) == {"torch 2.9"}


def test_versions_of_one_user_are_news_of_the_others_only_now_and_then() -> None:
    """Who runs each build for as long as makes it known: one alarm in thirty rows of theirs."""
    node, rows = Node.new("group g"), 3 * RENEWAL_ROWS
    for index in range(rows):
        node.meet(1, 1.0, user="ada")
        node.meet(2 + index // OWN_ROWS, 1.0, user="eve")
    assert node.cusum.alarms == rows // RENEWAL_ROWS
    node.meet(NAMES, 1.0, user="ada")
    assert node.cusum.alarms == rows // RENEWAL_ROWS + 1


def test_a_silent_group_loses_certainty() -> None:
    """After thirty days a row moves it more than one day after."""
    rows = [an_observation(42, at=at) for at in range(1, 40)]
    fresh, stale = levels_after(*rows), levels_after(*rows)
    for levels, at in ((fresh, 86_400.0), (stale, STALE_SECONDS + 100)):
        row = an_observation(46, at=at)
        levels.meet(row)
        levels.learn(row, levels.left_over(row))
    assert expected_gb(stale, a_subject()) > expected_gb(fresh, a_subject())


def test_rows_without_statistics_are_needed_until_there_are_enough_with() -> None:
    """Twenty of a group; another group still needs them."""
    told = a_history(40, told=True)
    levels = levels_after(*told)
    few = levels_after(*told[: MIN_STATISTICS_ROWS // 2])
    assert levels.needs_no_weak_labels(a_subject())
    assert not levels.needs_no_weak_labels(a_subject(group="a100/fsdp/one"))
    assert not few.needs_no_weak_labels(a_subject())


def test_a_level_that_moved_forgets() -> None:
    """Six rows far above raise an alarm of both levels, since a row that is named; the next row moves them more."""
    levels = levels_after(*a_history(30))
    sure, row = levels_after(*a_history(30)), an_observation(40.6, at=200)
    moved = [found for number in range(6) for found in levels.watch(a_subject(), 2.5, row=100 + number)]
    assert moved == [("framework fsdp", 100), ("group h100/fsdp/one", 100)]
    taken = [each.left_over(row) - each.learn(row, each.left_over(row)) for each in (levels, sure)]
    assert taken[0] > 2 * taken[1] > 0


def test_the_state_round_trips() -> None:
    """Through JSON, to the last bit, views included."""
    levels = levels_after(*a_history(30, version="2.7"))
    again = Levels.from_state(json.loads(json.dumps(levels.state())), Versions.from_state(levels.versions.state()))
    assert again.state() == levels.state()
    assert again.views() == levels.views()


@pytest.mark.parametrize("state", [[1.0] * 20 + ["ada", []], [1.0] * 21 + ["ada", 7], [1.0] * 21 + [1.0, []], ["x"] * 21 + ["ada", []]])
def test_a_node_that_cannot_be_read_is_refused(state: list[object]) -> None:
    """A number too few, versions that are no list, a user that is no name, a word for a number."""
    with pytest.raises(ValueError, match=r"21 numbers|could not convert"):
        node_from("group g", state)
