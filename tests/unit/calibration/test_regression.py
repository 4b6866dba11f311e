"""One level's ridge regression."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from peakgate.calibration.prior import STANDARD_DEVIATIONS
from peakgate.calibration.regression import Regression

Row = tuple[float, float, float, float]
ROWS = st.lists(st.tuples(st.floats(0, 80), st.floats(0, 80), st.floats(-3, 6), st.floats(0.01, 40)), min_size=1, max_size=30)


def a_regression(rows: list[Row], *, certainty: float = 1.0) -> Regression:
    """A regression that has learned (activations, states, residual, weight)."""
    regression = Regression(certainty=certainty)
    for activations, states, residual, weight in rows:
        x = (1.0, activations, states)
        regression.learn(x, residual - regression.at(x), weight)
    return regression


def numpys(rows: list[Row], *, certainty: float = 1.0) -> np.ndarray:
    """The same by a least-squares solver: the prior is three more rows that say zero."""
    prior = np.diag([certainty**0.5 / deviation for deviation in STANDARD_DEVIATIONS])
    x = np.array([[1.0, activations, states] for activations, states, _, _ in rows])
    root = np.sqrt([weight for *_, weight in rows])
    y = np.array([residual for _, _, residual, _ in rows])
    solution: np.ndarray = np.linalg.lstsq(np.vstack([prior, x * root[:, None]]), np.concatenate([np.zeros(3), y * root]), rcond=None)[0]
    return solution


@given(rows=ROWS, certainty=st.sampled_from([1.0, 2.0]))
def test_it_is_the_ridge_solution(rows: list[Row], certainty: float) -> None:
    """Row by row gives what a solver gives that sees all rows at once."""
    assert a_regression(rows, certainty=certainty).theta == pytest.approx(numpys(rows, certainty=certainty), rel=1e-6, abs=1e-8)


def test_it_finds_what_the_rows_follow() -> None:
    """0.8 GB, 5 % of the activations, 1 % of the states."""
    draw = random.Random(3)
    rows = [(a, s, 0.8 + 0.05 * a + 0.01 * s, 40.0) for a, s in ((draw.uniform(0, 40), draw.uniform(0, 40)) for _ in range(400))]
    assert a_regression(rows).theta == pytest.approx((0.8, 0.05, 0.01), rel=0.02)


def test_it_says_what_it_leaves_over() -> None:
    """The rest of a residual once its own share, moved by the row, is gone."""
    regression, x = Regression(certainty=1.0), (1.0, 10.0, 5.0)
    left_over = regression.learn(x, 2.0, 4.0)
    assert left_over == pytest.approx(2.0 - regression.at(x))
    assert 0 < left_over < 2.0


@given(rows=ROWS)
def test_forgetting_keeps_the_estimate(rows: list[Row]) -> None:
    """Only its certainty goes."""
    regression = a_regression(rows)
    before = regression.theta
    regression.forget()
    assert regression.theta == pytest.approx(before, rel=1e-6, abs=1e-9)


def test_after_forgetting_a_row_moves_it_more() -> None:
    """Ten times fewer rows' worth of certainty."""
    rows = [(10.0, 5.0, 1.0, 4.0)] * 100
    sure, unsure, x = a_regression(rows), a_regression(rows), (1.0, 10.0, 5.0)
    unsure.forget()
    assert unsure.learn(x, 3.0, 4.0) < sure.learn(x, 3.0, 4.0)


@given(rows=ROWS, forgets=st.booleans())
def test_its_state_is_all_of_it(rows: list[Row], forgets: bool) -> None:
    """Nine numbers give the same estimate to the last bit, also right after it forgot."""
    regression = a_regression(rows)
    if forgets:
        regression.forget()
    numbers = regression.state()
    again = Regression(certainty=1.0, m=numbers[:6], v=numbers[6:])
    assert (again.theta, again.state()) == (regression.theta, numbers)
