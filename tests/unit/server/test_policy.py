"""A policy by what the two mistakes cost."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.calibration.builders import a_calibrator, a_history, a_subject

from peakgate.calibration import Snapshot, Subject, prior
from peakgate.server.assess import Assessor
from peakgate.server.memory import memory_model
from peakgate.server.policy import Policy, coverage_of_costs

COSTS = st.floats(min_value=1e-3, max_value=1e3)


@given(oom_cost=COSTS, rejection_cost=COSTS)
def test_the_coverage_leaves_what_the_rule_rejects_from(oom_cost: float, rejection_cost: float) -> None:
    """1 - coverage is 1 / (1 + c_oom / c_reject); at that probability both choices cost the same; the unit does not matter."""
    coverage = coverage_of_costs(oom_cost, rejection_cost)
    p_oom = 1 - coverage
    assert p_oom == pytest.approx(1 / (1 + oom_cost / rejection_cost))
    assert p_oom * oom_cost == pytest.approx((1 - p_oom) * rejection_cost)
    assert coverage_of_costs(7 * oom_cost, 7 * rejection_cost) == pytest.approx(coverage)


@pytest.mark.parametrize(("oom_cost", "rejection_cost", "want"), [(19, 1, 0.95), (1, 1, 0.5), (1, 3, 0.25)])
def test_known_costs(oom_cost: float, rejection_cost: float, want: float) -> None:
    """Nineteen to one is the default's 95 %."""
    assert coverage_of_costs(oom_cost, rejection_cost) == pytest.approx(want)


@pytest.mark.parametrize(("oom_cost", "rejection_cost"), [(1e300, 1e-300), (1e-300, 1e300)])
def test_costs_that_no_bound_could_hold_are_refused(oom_cost: float, rejection_cost: float) -> None:
    """They would be a coverage of 1, or of 0."""
    with pytest.raises(ValueError, match="too far apart"):
        coverage_of_costs(oom_cost, rejection_cost)


SNAPSHOTS = (a_calibrator(a_history(400, seed=4)).snapshot(), a_calibrator(a_history(300, seed=5, scatter=1.6, shift_gb=1.0)).snapshot())


def is_at_a_clamp(snapshot: Snapshot, subject: Subject, alpha: float) -> bool:
    """Whether the bound is held by a floor or a ceiling, or the calibration is not trusted, so that it is not the quantile's."""
    quantile, scale = snapshot.curve.quantile(alpha), snapshot._scale(subject)
    lowest = prior.LOWEST_EAGER_QUANTILE if alpha > prior.EAGER_ALPHA else prior.LOWEST_QUANTILE
    bound = snapshot.trusted_bound(subject, coverage=1 - alpha)
    residual = bound.bound_bytes / prior.GIGABYTE - subject.counted
    at_floor = residual <= prior.LOWEST_RESIDUAL + 1e-6
    at_quantile = quantile <= lowest or quantile * scale >= prior.HIGHEST_QUANTILE * min(scale, subject.scale)
    return bool(bound.distrust) or bound.clamped or at_floor or at_quantile


@pytest.mark.parametrize("snapshot", SNAPSHOTS, ids=["settled", "noisy"])
def test_the_verdict_and_the_probability_agree_with_the_rule(snapshot: Snapshot) -> None:
    """Over random jobs, cards and costs: what is rejected has more than 1 / (1 + c_oom / c_reject) of running out, what is admitted not."""
    draw = random.Random(7)
    seen: Counter[bool] = Counter()
    for _ in range(3000):
        costs = draw.uniform(1, 40), draw.uniform(0.5, 2)
        subject = a_subject(required_gb=draw.uniform(20, 60), activations_gb=draw.uniform(2, 15), user="")
        policy = Policy(coverage=coverage_of_costs(*costs), careful_coverage=0.01)  # an alarm tightens no coverage here
        assessor = Assessor(memory=memory_model(), snapshot=snapshot, policy=policy)
        coverage, bound = assessor.bound(subject)
        usable_bytes = bound.bound_bytes + round(draw.uniform(-1.5, 1.5) * prior.GIGABYTE)
        if is_at_a_clamp(snapshot, subject, 1 - coverage) or abs(usable_bytes - bound.bound_bytes) < 10:
            continue
        rejects = bound.bound_bytes > usable_bytes
        p_oom = snapshot.oom_probability(subject, usable_bytes=usable_bytes)
        assert rejects == (p_oom > 1 / (1 + costs[0] / costs[1]) + 1e-9), (costs, subject, usable_bytes)
        seen[rejects] += 1
    assert min(seen[True], seen[False]) > 500


def test_care_stays_at_least_what_the_costs_say() -> None:
    """Of a young group: the careful coverage, or that of the costs where it is higher."""
    subject = replace(a_subject(), user="")
    for costs, want in (((19.0, 1.0), 0.99), ((999.0, 1.0), 0.999)):
        assessor = Assessor(memory=memory_model(), snapshot=Snapshot(), policy=Policy(coverage=coverage_of_costs(*costs)))
        assert assessor.bound(subject)[0] == pytest.approx(want)
