"""Policies by the words that name them."""

from __future__ import annotations

import pytest

from peakgate.server.errors import PeakgateError
from peakgate.server.policy import Policy
from peakgate.server.simulation.policies import candidate, candidates

SITE = Policy(coverage=0.9, operator_reserve_bytes=7, gpu_order=("l4-24gb",))


@pytest.mark.parametrize(
    ("text", "want_title", "want_coverages"),
    [
        ("alpha:0.02", "α = 2 %", (0.98, 0.98)),
        ("alpha:0.05/0.01", "α = 5 %, 1 % where unsure", (0.95, 0.99)),
        ("costs:19:1", "an OOM costs 19, a rejection 1", (0.95, 0.99)),
        ("costs:999:1", "an OOM costs 999, a rejection 1", (0.999, 0.999)),
        ("site", "what this site runs now", (0.9, 0.99)),
    ],
)
def test_a_word_names_a_policy(text: str, want_title: str, want_coverages: tuple[float, float]) -> None:
    """With the operator's reserve under each of them."""
    found = candidate(text, site=SITE)
    assert found.policy is not None
    assert (found.title, found.policy.operator_reserve_bytes) == (want_title, 7)
    assert (found.policy.coverage, found.policy.careful_coverage) == pytest.approx(want_coverages)


def test_a_fixed_margin_is_a_part_of_the_card() -> None:
    """In per cent, with the sign or without."""
    assert [candidate(text, site=SITE).fixed_ratio for text in ("fixed:15", "fixed:15%")] == [0.15, 0.15]


@pytest.mark.parametrize(
    "text",
    ["", "fixed", "fixed:x", "fixed:-1", "fixed:101", "alpha:0", "alpha:1", "alpha:nan", "alpha:.1/", "costs:1", "costs:0:1", "best"],
)
def test_another_word_is_refused(text: str) -> None:
    """With the forms that there are."""
    with pytest.raises(PeakgateError, match="names no policy; state fixed:PERCENT"):
        candidate(text, site=SITE)


def test_without_a_word_the_usual_ones_are_compared() -> None:
    """Rules of thumb, levels, the costs that were stated and the site's own; each once."""
    found = [each.text for each in candidates((), site=SITE, oom_cost=10, rejection_cost=2)]
    assert found[:3] == ["fixed:10", "fixed:15", "fixed:20"]
    assert found[-2:] == ["costs:10:2", "site"]
    assert [each.text for each in candidates(("site", "site"), site=SITE, oom_cost=1, rejection_cost=1)] == ["site"]


def test_costs_decide_where_both_mistakes_cost_the_same_in_the_mean() -> None:
    """p·c_oom = (1 − p)·c_reject."""
    found = candidate("costs:30:2", site=SITE)
    assert found.policy is not None
    alpha = 1 - found.policy.coverage
    assert alpha * 30.0 == pytest.approx((1 - alpha) * 2.0)


def test_too_many_policies_are_refused() -> None:
    """Each replays the whole history."""
    with pytest.raises(PeakgateError, match="at most 20"):
        candidates([f"fixed:{each}" for each in range(21)], site=SITE, oom_cost=1, rejection_cost=1)
