"""The two cumulative sums that find a level that has moved."""

from __future__ import annotations

import random

import pytest

from peakgate.calibration.drift import ALARM_ROWS, CLIP, LIMIT, SLACK, UP, Cusum


def alarms_of(scores: list[float]) -> list[tuple[int, int]]:
    """Rows at which an alarm was raised, with the rows since which the level was wrong."""
    cusum = Cusum()
    found = ((row, cusum.see(score, row=row)) for row, score in enumerate(scores))
    return [(row, since) for row, since in found if since is not None]


def test_scores_around_the_level_raise_no_alarm() -> None:
    """6000 standard normal scores with tails, as in a cluster without drift."""
    draw = random.Random(5)
    assert alarms_of([draw.gauss(0, 0.9) + (6 if draw.random() < 0.005 else 0) for _ in range(6000)]) == []


@pytest.mark.parametrize("sign", [1, -1])
def test_a_shift_raises_an_alarm_within_the_rows_it_takes(sign: int) -> None:
    """A shift of 2.5 adds 1.5 a row: the limit of 8 is passed by the sixth, and the level was wrong since the first."""
    assert (SLACK, LIMIT) == (1.0, 8.0)
    assert alarms_of([0.0] * 20 + [sign * 2.5] * 6) == [(25, 20)]


def test_one_wild_row_raises_no_alarm() -> None:
    """It counts for three scores at most."""
    assert alarms_of([0.0, 1e9, 0.0, 0.0]) == []
    assert CLIP - SLACK < LIMIT / 3


def test_only_an_upward_alarm_widens_the_bounds() -> None:
    """A level that lies too high is safe."""
    up, down = Cusum(), Cusum()
    for row in range(6):
        up.see(2.5, row=row)
        down.see(-2.5, row=row)
    assert (up.alarm_rows, down.alarm_rows) == (ALARM_ROWS, 0)
    assert (up.alarms, down.alarms) == (1, 1)


def test_an_alarm_ends() -> None:
    """After fifteen rows without another."""
    cusum = Cusum()
    cusum.raise_alarm(UP)
    for row in range(ALARM_ROWS - 1):
        cusum.see(0.0, row=row)
    assert cusum.alarm_rows == 1
    cusum.see(0.0, row=ALARM_ROWS)
    assert cusum.alarm_rows == 0


def test_a_sum_that_fell_to_zero_starts_again() -> None:
    """What lay before says nothing about since when the level is wrong."""
    assert alarms_of([2.5, 2.5, -3, -3, *[2.5] * 6]) == [(9, 4)]
