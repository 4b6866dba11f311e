"""Which coverage a bound has, and whether it is trusted."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.calibration.builders import a_calibrator, an_observation
from tests.unit.server.test_subjects import a_real_job

from peakgate.calibration import Calibrator, Snapshot
from peakgate.calibration.trust import MISSES_TOO_OFTEN, Trust
from peakgate.server.assess import Assessment, Assessor
from peakgate.server.memory import memory_model
from peakgate.server.policy import Policy

JOB = a_real_job()


def assessed(snapshot: Snapshot, policy: Policy = Policy()) -> Assessment:  # noqa: B008 - it is frozen
    """The real memory model's job."""
    return Assessor(memory=memory_model(), snapshot=snapshot, policy=policy).assess(JOB)


def a_settled_snapshot(rows: int = 100) -> Snapshot:
    """Jobs like this one needed what was predicted."""
    subject = assessed(Snapshot()).subject
    need_gb = subject.required_bytes / 1e9
    return a_calibrator(an_observation(need_gb, at=float(at), of=subject) for at in range(1, rows + 1)).snapshot()


def test_a_young_group_is_covered_with_care() -> None:
    """At 99 %; once it is known, by the operator's own."""
    young, settled = assessed(Calibrator(epoch="test").snapshot()), assessed(a_settled_snapshot())
    assert (young.coverage, settled.coverage) == (0.99, 0.95)
    assert (young.observations, settled.observations) == (0, 100)
    assert young.bound_bytes > settled.bound_bytes


def test_a_drift_and_a_new_version_are_covered_with_care() -> None:
    """An alarm that is open, or a torch that was never met: 99 % again, until it is known what holds now."""
    settled = a_settled_snapshot()
    subject = assessed(settled).subject
    alarmed = {name: replace(view, alarmed=name == subject.levels[0]) for name, view in settled.nodes.items()}
    upgraded = {name: replace(view, versions=(1,)) for name, view in settled.nodes.items()}
    for nodes in (alarmed, upgraded):
        found = assessed(replace(settled, nodes=nodes, versions={"torch 1.13": 1}))
        assert (found.coverage, assessed(settled).coverage) == (0.99, 0.95)
        assert found.bound_bytes > assessed(settled).bound_bytes


@pytest.mark.parametrize(("policy", "want"), [(Policy(careful_coverage=0.97), 0.97), (Policy(coverage=0.999), 0.999)])
def test_the_operator_says_how_careful(policy: Policy, want: float) -> None:
    """Care does not make a stricter policy looser."""
    assert assessed(Snapshot(), policy).coverage == want


def test_a_bound_that_is_not_trusted_is_wide_and_says_why() -> None:
    """At least 15 % of the card above the requirement, at 99 %."""
    settled = a_settled_snapshot()
    trusted = assessed(settled)
    found = assessed(replace(settled, trust=Trust(chances=(0.0,) * 200)))
    assert (trusted.distrust, found.distrust, found.coverage) == ((), (MISSES_TOO_OFTEN,), 0.99)
    assert found.bound_bytes - found.prediction.required_bytes >= 0.15 * found.subject.card_bytes
    assert trusted.bound_bytes < found.bound_bytes


def test_the_probability_agrees_with_the_bound() -> None:
    """A card of exactly the bound is passed with no more than what the coverage leaves."""
    for snapshot in (Snapshot(), a_settled_snapshot()):
        found = assessed(snapshot)
        assert snapshot.oom_probability(found.subject, usable_bytes=found.bound_bytes) <= 1 - found.coverage + 1e-9
