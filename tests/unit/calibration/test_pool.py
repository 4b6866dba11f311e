"""The pool of scores: its window, users' shares, repeated jobs, purges."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from peakgate.calibration.curve import Curve, curve_of
from peakgate.calibration.pool import LEAST_USER_ROWS, SAME_JOB_ROWS, WINDOW, Pool, Score
from peakgate.calibration.prior import MIN_SCORES


def a_score(
    value: float, row: int, *, user: str = "", config: str = "", exact: bool = True, group: str = "g", framework: str = "f"
) -> Score:
    """The score of a row."""
    return Score(value, exact, user, config, framework, group, row, f"predictions/{row}")


def a_pool(*scores: Score) -> Pool:
    """A pool with these."""
    pool = Pool()
    for score in scores:
        pool.add(score)
    return pool


def test_too_few_scores_make_no_curve() -> None:
    """The prior's quantile stands until there are sixty."""
    scores = [a_score(index / 10, index) for index in range(MIN_SCORES)]
    assert a_pool(*scores[:-1]).curve(without=()) == Curve()
    assert a_pool(*scores).curve(without=()).scores == tuple(score.value for score in scores)


def test_the_curve_does_not_depend_on_the_order_of_values() -> None:
    """Scores stand by value however they came."""
    values = [(index * 37) % 101 / 10 for index in range(101)]
    pool = a_pool(*(a_score(value, row, exact=row % 3 > 0) for row, value in enumerate(values)))
    assert pool.curve(without=()) == curve_of(sorted((value, row % 3 == 0, 1.0) for row, value in enumerate(values)), total=101)


def test_the_oldest_scores_leave() -> None:
    """Of 2003 the newest 2000 stay, and the predictions of the others are forgotten."""
    pool = a_pool(*(a_score(row, row) for row in range(WINDOW + 3)))
    assert len(pool) == WINDOW
    assert pool.curve(without=()).scores[0] == 3
    assert ("predictions/2" in pool, "predictions/3" in pool) == (False, True)


def test_a_user_has_a_share_of_the_weight() -> None:
    """120 of 200 scores by one user weigh as much as twenty."""
    scores = [a_score(0.0 if row < 80 else 5.0, row, user=f"user-{row}" if row < 80 else "heavy") for row in range(200)]
    survival = a_pool(*scores).curve(without=()).survival(4.0)
    assert survival == pytest.approx((LEAST_USER_ROWS + 1) / (80 + LEAST_USER_ROWS + 1))


def test_a_user_can_be_left_out() -> None:
    """The curve is that of the others."""
    mine = [a_score(9.0, 200 + row, user="mallory") for row in range(50)]
    others = [a_score(row / 80, row, user=f"user-{row}") for row in range(80)]
    assert a_pool(*others, *mine).curve(without=("mallory",)).survival(1.0) == a_pool(*others).curve(without=()).survival(1.0)


def test_repeats_of_one_job_are_few_facts() -> None:
    """The newest three of a user's runs of the same job stay."""
    pool = a_pool(*(a_score(row, row, user="ada", config="nightly") for row in range(10)), a_score(0.5, 99, user="bob", config="nightly"))
    assert len(pool) == SAME_JOB_ROWS + 1
    assert [score.row for score in pool.newest_exact(10)] == [99, 9, 8, 7]


def test_a_purge_takes_what_was_scored_under_a_level_since_a_row() -> None:
    """And nothing of other groups, and nothing before."""
    pool = a_pool(*(a_score(row, row, group="odd" if row % 2 else "even") for row in range(100)))
    pool.purge("group odd", since=50)
    assert sorted(score.row for score in pool.newest_exact(100)) == [row for row in range(100) if row < 50 or row % 2 == 0]
    pool.purge("framework f", since=0)
    assert (len(pool), pool.users()) == (0, frozenset())


def test_the_state_round_trips() -> None:
    """Through JSON, to the last bit; and both pools go on in the same way."""
    pool = a_pool(*(a_score(row / 3, row, user=f"user-{row % 5}", config=f"job-{row % 40}", exact=row % 4 > 0) for row in range(300)))
    again = Pool.from_state(json.loads(json.dumps(pool.state())))
    for each in (pool, again):
        each.add(replace(a_score(7.0, 999), chance=0.25, told=True))
    assert again.state() == pool.state()
    assert again.curve(without=("user-1",)) == pool.curve(without=("user-1",))
