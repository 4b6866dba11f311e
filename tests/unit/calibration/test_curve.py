"""The survival curve of standardised scores, against a plain weighted Kaplan–Meier estimator."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from peakgate.calibration import prior
from peakgate.calibration.curve import Curve, Step, curve_of

STEPS = st.lists(
    st.tuples(st.floats(-10, 30).map(lambda score: round(score, 1)), st.booleans(), st.floats(0.05, 1)), min_size=1, max_size=40
)


def a_curve(steps: list[Step]) -> Curve:
    """The curve of steps in any order."""
    return curve_of(sorted(steps), total=math.fsum(weight for *_, weight in steps))


def kaplan_meier(steps: list[Step], at: float) -> float:
    """P(score > at), as the paper has it: over the distinct exact scores, with all weights at risk counted anew; one more never dies."""
    alive = 1.0
    for place in sorted({score for score, censored, _ in steps if not censored and score <= at}):
        died = sum(weight for score, censored, weight in steps if score == place and not censored)
        at_risk = sum(weight for score, _, weight in steps if score >= place) + 1.0
        alive *= 1 - died / at_risk
    return alive


def test_without_scores_the_curve_is_the_prior() -> None:
    """One percent beyond the first quantile, half beyond zero, and the first quantile for every α."""
    assert Curve().survival(prior.FIRST_QUANTILE) == pytest.approx(0.01)
    assert Curve().survival(0.0) == pytest.approx(0.5)
    assert [Curve().quantile(alpha) for alpha in (0.01, 0.5)] == [prior.FIRST_QUANTILE] * 2


def test_the_product_limit_is_that_of_the_textbook() -> None:
    """Exact scores 1, 3, 4, one censored at 2, and one to come: survival 4/5, then 4/5·2/3, then 4/5·2/3·1/2."""
    curve = a_curve([(4.0, False, 1.0), (2.0, True, 1.0), (3.0, False, 1.0), (1.0, False, 1.0)])
    assert curve.scores == (1.0, 3.0, 4.0)
    assert curve.alive == pytest.approx((4 / 5, 8 / 15, 4 / 15))


@given(steps=STEPS, at=st.floats(-12, 32))
def test_the_curve_is_the_plain_estimator(steps: list[Step], at: float) -> None:
    """With weights, ties and lower bounds."""
    assert a_curve(steps).survival(at) == pytest.approx(kaplan_meier(steps, at), abs=1e-9)


@given(steps=STEPS, low=st.floats(-20, 40), high=st.floats(-20, 40))
def test_survival_falls(steps: list[Step], low: float, high: float) -> None:
    """A larger score is never more likely to be passed, and a probability stays one."""
    curve = a_curve(steps)
    low, high = sorted((low, high))
    assert 0 <= curve.survival(high) <= curve.survival(low) <= 1


@given(steps=STEPS, alpha=st.floats(0.001, 0.999))
def test_the_quantile_inverts_the_survival(steps: list[Step], alpha: float) -> None:
    """At the quantile the probability is low enough, and just below it it is not; unless a limit holds it."""
    curve = a_curve(steps)
    score = curve.quantile(alpha)
    if score < prior.HIGHEST_QUANTILE:
        assert curve.survival(score) <= alpha
    if score > (prior.LOWEST_EAGER_QUANTILE if alpha > prior.EAGER_ALPHA else prior.LOWEST_QUANTILE):
        assert curve.survival(score - 1e-6) > alpha


def test_with_few_scores_no_finite_one_covers() -> None:
    """98 exact scores cannot promise 99 %, 99 can (split conformal prediction needs 1/α − 1)."""
    scores = [(2.0 + index / 100, False, 1.0) for index in range(99)]
    assert a_curve(scores[:98]).quantile(0.01) == prior.HIGHEST_QUANTILE
    assert a_curve(scores).quantile(0.01) == pytest.approx(2.98)


@given(steps=STEPS, censored=st.floats(-10, 30), at=st.floats(-10, 40))
def test_a_lower_bound_never_makes_the_curve_fall_faster(steps: list[Step], censored: float, at: float) -> None:
    """A job that ran out of memory is evidence for larger needs only."""
    assert a_curve([*steps, (censored, True, 1.0)]).survival(at) >= a_curve(steps).survival(at) - 1e-12


@given(steps=STEPS)
def test_a_user_left_out_is_as_if_not_there(steps: list[Step]) -> None:
    """Weight zero changes no survival."""
    with_nobody = a_curve([*steps, (3.0, False, 0.0)])
    assert all(math.isclose(with_nobody.survival(at), a_curve(steps).survival(at)) for at in range(-10, 30))
