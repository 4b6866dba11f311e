"""How much noisier a group is than the scale says."""

from __future__ import annotations

import random

import pytest

from peakgate.calibration.spread import Spread


def a_spread(scatter: float, *, rows: int = 400) -> Spread:
    """The spread of a group with so many normal scores."""
    draw, spread = random.Random(2), Spread()
    for _ in range(rows):
        spread.see(draw.gauss(0, scatter))
    return spread


def test_a_quiet_group_is_not_narrowed() -> None:
    """Neither one that was never seen."""
    assert (Spread().ratio, a_spread(0.3).ratio) == (1.0, 1.0)


def test_a_noisy_group_is_widened_as_it_is_known() -> None:
    """Towards its scatter, the prior of twenty rows in a hundred and twenty aside; little after five rows."""
    assert a_spread(1.5).ratio == pytest.approx(((20 + 100 * 1.5**2) / 120) ** 0.5, rel=0.1)
    assert a_spread(1.5, rows=5).ratio < 1.15


def test_one_wild_score_is_no_noise() -> None:
    """It counts for three."""
    spread = a_spread(0.9)
    before = spread.ratio
    spread.see(1e6)
    assert spread.ratio - before < 0.05


def test_a_group_that_has_calmed_down_is_narrow_again() -> None:
    """Some hundred rows are remembered."""
    spread = a_spread(2.0)
    for _ in range(400):
        spread.see(0.2)
    assert spread.ratio == 1.0
