"""The survival curve of standardised scores."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from peakgate.calibration import prior
from peakgate.calibration.curve import Curve, product_limit

SCORES = st.lists(st.tuples(st.floats(-10, 30), st.booleans()), max_size=40)


def test_without_scores_the_curve_is_the_prior() -> None:
    """The median of the prior is 0, and its 95 % quantile lies at ln 19 logistic scales, 1.62 standard deviations."""
    assert Curve().quantile(0.5) == pytest.approx(0.0, abs=1e-6)
    assert Curve().quantile(0.05) == pytest.approx(1.6234, abs=1e-4)


def test_the_product_limit_is_that_of_the_textbook() -> None:
    """Exact scores 1, 3 and 4 with one censored at 2: survival 3/4, then 3/4·1/2, then 0 (Kaplan and Meier 1958)."""
    assert product_limit([(4.0, True), (2.0, False), (3.0, True), (1.0, True)]).alive == (0.75, 0.75, 0.375, 0.0)


def test_a_tie_counts_the_exact_score_first() -> None:
    """A job that was censored at a score outlived it."""
    assert product_limit([(1.0, False), (1.0, True)]).alive == (0.5, 0.5)


@given(pairs=SCORES, low=st.floats(-20, 40), high=st.floats(-20, 40))
def test_survival_falls(pairs: list[tuple[float, bool]], low: float, high: float) -> None:
    """A larger score is never more likely to be passed, and a probability stays one."""
    curve = product_limit(pairs)
    low, high = sorted((low, high))
    assert 0 <= curve.survival(high) <= curve.survival(low) <= 1


@given(pairs=SCORES, exceeded_by=st.floats(1e-6, 0.999))
def test_the_quantile_inverts_the_survival(pairs: list[tuple[float, bool]], exceeded_by: float) -> None:
    """At the quantile the probability is low enough, and just below it it is not."""
    curve = product_limit(pairs)
    score = curve.quantile(exceeded_by)
    assert curve.survival(score) <= exceeded_by < curve.survival(score - 1e-6)


@given(pairs=SCORES)
def test_the_order_of_the_scores_does_not_matter(pairs: list[tuple[float, bool]]) -> None:
    """The curve is a function of the set."""
    assert product_limit(reversed(pairs)) == product_limit(pairs)


@given(pairs=SCORES, censored=st.floats(-10, 30), at=st.floats(-10, 40))
def test_a_lower_bound_never_makes_the_curve_fall_faster(pairs: list[tuple[float, bool]], censored: float, at: float) -> None:
    """A job that ran out of memory is evidence for larger needs only."""
    exact = [pair for pair in pairs if pair[1]]
    assert product_limit([*exact, (censored, False)]).survival(at) >= product_limit(exact).survival(at) - 1e-12


def test_the_prior_is_standardised() -> None:
    """Its variance is 1 (integrated numerically), so that spreads are standard deviations."""
    steps = [(index + 0.5) / 100 for index in range(-4000, 4000)]
    variance = sum(x * x * (prior.survival(x - 0.005) - prior.survival(x + 0.005)) for x in steps)
    assert variance == pytest.approx(1.0, abs=1e-3)


def test_a_known_group_is_narrower() -> None:
    """The width starts at 1 and falls to the scatter between jobs."""
    widths = [prior.width(rows) for rows in (0, 1, 5, 50, 10_000)]
    assert widths[0] == 1.0
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] == pytest.approx(prior.SCATTER, abs=1e-3)
