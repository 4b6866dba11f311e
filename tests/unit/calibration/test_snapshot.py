"""Laws of a snapshot: which way a bound moves, and that it agrees with the probability."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.calibration.builders import GB, a_calibrator, a_history, a_subject, bound_gb

from peakgate.calibration import Snapshot, Subject, prior
from peakgate.calibration.node import YOUNG_ROWS
from peakgate.calibration.subject import TEXTBOOK

SNAPSHOTS: tuple[Snapshot, ...] = (
    Snapshot(),
    a_calibrator(a_history(30)).snapshot(),
    a_calibrator(a_history(300)).snapshot(),
    replace(a_calibrator(a_history(300, shift_gb=-1.0)).snapshot(), suspects={("ada", "fsdp"): 3.0}),
)
"""Before anything was observed, before there is a curve, after; and with a user under suspicion."""
JOBS = st.builds(
    a_subject,
    required_gb=st.floats(3, 90),
    activations_gb=st.floats(0, 40),
    group=st.sampled_from(["h100/fsdp/one", "never"]),
    framework=st.sampled_from(["fsdp", "never", TEXTBOOK]),
    user=st.sampled_from(["ada", "bob", ""]),
)
ALPHAS = st.floats(0.001, 0.4)


def test_the_first_bound_is_the_prior() -> None:
    """3.5 scales of 0.15 GB and 2 % of 10 GB above the requirement; no observation stands behind it."""
    bound = Snapshot().bound(a_subject(), coverage=0.95)
    assert bound.bound_bytes / GB == pytest.approx(40 + 3.5 * 0.35, abs=1e-6)
    assert (bound.group, bound.observations, bound.clamped) == ("h100/fsdp/one", 0, False)


@given(snapshot=st.sampled_from(SNAPSHOTS), subject=JOBS, alphas=st.tuples(ALPHAS, ALPHAS))
def test_the_bound_rises_with_the_coverage(snapshot: Snapshot, subject: Subject, alphas: tuple[float, float]) -> None:
    """To be surer never costs less."""
    high, low = sorted(alphas)
    assert snapshot.bound(subject, coverage=1 - low).bound_bytes <= snapshot.bound(subject, coverage=1 - high).bound_bytes


@given(snapshot=st.sampled_from(SNAPSHOTS), subject=JOBS, more=st.integers(0, 40 * GB), alpha=ALPHAS)
def test_the_bound_rises_with_the_requirement(snapshot: Snapshot, subject: Subject, more: int, alpha: float) -> None:
    """With everything else the same."""
    larger = replace(subject, required_bytes=subject.required_bytes + more)
    assert snapshot.bound(subject, coverage=1 - alpha).bound_bytes <= snapshot.bound(larger, coverage=1 - alpha).bound_bytes


@given(snapshot=st.sampled_from(SNAPSHOTS), subject=JOBS, usable=st.tuples(st.integers(0, 100 * GB), st.integers(0, 100 * GB)))
def test_a_larger_card_never_makes_an_out_of_memory_likelier(snapshot: Snapshot, subject: Subject, usable: tuple[int, int]) -> None:
    """And a probability stays one."""
    small, large = sorted(usable)
    likely, unlikely = (snapshot.oom_probability(subject, usable_bytes=size) for size in (small, large))
    assert 0 <= unlikely <= likely <= 1


@given(snapshot=st.sampled_from(SNAPSHOTS), subject=JOBS, usable_bytes=st.integers(0, 100 * GB), alpha=ALPHAS)
def test_what_fits_its_bound_is_unlikely_to_run_out(snapshot: Snapshot, subject: Subject, usable_bytes: int, alpha: float) -> None:
    """Within the bound the probability is at most α, unless the curve or the residual met a limit from above."""
    bound = snapshot.bound(subject, coverage=1 - alpha)
    spread = max((node.spread for node in snapshot.nodes.values()), default=1.0)
    limited = bound.clamped or snapshot.curve.quantile(alpha) * spread >= prior.HIGHEST_QUANTILE
    untold = not snapshot.curve.scores and alpha < 0.01  # the first quantile promises 99 %
    if bound.bound_bytes <= usable_bytes and not (limited or untold):
        assert snapshot.oom_probability(subject, usable_bytes=usable_bytes) <= alpha + 1e-9


def test_what_passes_its_bound_is_likelier_than_promised_to_run_out() -> None:
    """Just below a bound that no limit holds."""
    snapshot, subject = SNAPSHOTS[2], a_subject()
    for alpha in (0.03, 0.05, 0.2):
        usable_bytes = snapshot.bound(subject, coverage=1 - alpha).bound_bytes - 1000
        assert alpha < snapshot.oom_probability(subject, usable_bytes=usable_bytes) < 2 * alpha


@pytest.mark.parametrize("coverage", [0.0, 1.0, -0.5, 95.0, float("nan")])
def test_a_coverage_is_a_probability(coverage: float) -> None:
    """Certainty has no finite bound, and 95 is not 0.95."""
    with pytest.raises(ValueError, match="coverage"):
        Snapshot().bound(a_subject(), coverage=coverage)


def test_a_textbook_job_has_no_margin() -> None:
    """The seeds' figures have no runtime part: the bound is the requirement, and it fits or does not."""
    subject = a_subject(framework=TEXTBOOK)
    for snapshot in SNAPSHOTS:
        assert snapshot.bound(subject, coverage=0.999).bound_bytes == 40 * GB
        assert [snapshot.oom_probability(subject, usable_bytes=40 * GB + more) for more in (0, -1)] == [0.0, 1.0]
        assert snapshot.trusted_bound(subject, coverage=0.95, told=("AGENTS_SILENT",)).bound_bytes == 40 * GB


def test_a_residual_has_limits() -> None:
    """Never below a bare context, never above 35 % of the card; where it met the upper one the bound says so."""
    low = a_calibrator(a_history(200, shift_gb=-4.0))
    tiny = a_subject(runtime_gb=0.0, activations_gb=0.0)
    assert bound_gb(low, of=tiny) == pytest.approx(40 + prior.LOWEST_RESIDUAL)
    huge = Snapshot().bound(a_subject(required_gb=70, runtime_gb=27.5), coverage=0.95)
    assert huge.bound_bytes / GB == pytest.approx(42.5 + 0.35 * 80)
    assert huge.clamped


def test_a_limit_does_not_go_below_the_requirement() -> None:
    """Of a job far beyond its card, whose fragmentation alone is larger than the limit."""
    bound = Snapshot().bound(a_subject(required_gb=300, runtime_gb=30), coverage=0.95)
    assert (bound.bound_bytes, bound.clamped) == (300 * GB, True)


@pytest.mark.parametrize("required_bytes", [130_090_066_618, 135_526_973_219, 66_675_269_592])
def test_a_textbook_bound_is_the_requirement_to_the_byte(required_bytes: int) -> None:
    """Gigabytes in floating point do not come back to every byte."""
    subject = replace(a_subject(framework=TEXTBOOK), required_bytes=required_bytes)
    assert Snapshot().bound(subject, coverage=0.95).bound_bytes == required_bytes
    assert Snapshot().oom_probability(subject, usable_bytes=required_bytes) == 0.0


def test_an_unsure_snapshot_says_so() -> None:
    """The group is young, a version is new, an alarm is open."""
    young = a_calibrator(a_history(YOUNG_ROWS))
    settled = a_calibrator(a_history(40, version="2.7")).snapshot()
    assert young.snapshot().is_unsure(a_subject())
    assert not settled.is_unsure(a_subject(version="2.7"))
    assert not settled.is_unsure(a_subject())
    assert settled.is_unsure(a_subject(version="2.8"))
    drifted = a_calibrator([*a_history(100), *a_history(8, start=101, shift_gb=1.5)]).snapshot()
    assert drifted.is_unsure(a_subject())


def test_a_level_names_the_versions_that_it_met() -> None:
    """The one that ran last at the end; one that a single user tried once is nobody's."""
    rows = [*a_history(20, version="2.7"), *a_history(20, start=21, version="2.8"), *a_history(1, start=41, version="nightly")]
    snapshot = a_calibrator(rows).snapshot()
    assert snapshot.names(snapshot.nodes["framework fsdp"]) == ("2.7", "2.8")


def test_a_version_that_was_never_met_is_bounded_higher() -> None:
    """By one and a half scores a level, in the group's own spread."""
    snapshot = a_calibrator(a_history(100, version="2.7")).snapshot()
    spread = snapshot.nodes["group h100/fsdp/one"].spread
    known, new = (snapshot.bound(a_subject(version=version), coverage=0.95).bound_bytes / GB for version in ("2.7", "2.8"))
    assert new - known == pytest.approx(2 * prior.ALARM_SCORES * a_subject().scale * spread, abs=1e-6)


def test_a_snapshot_does_not_change_while_the_calibrator_learns() -> None:
    """A prediction in flight sees one version."""
    calibrator = a_calibrator(a_history(50))
    snapshot = calibrator.snapshot()
    before = snapshot.bound(a_subject(), coverage=0.95)
    for observation in a_history(50, start=51, shift_gb=2.0):
        calibrator.learn(observation)
    assert snapshot.bound(a_subject(), coverage=0.95) == before != calibrator.snapshot().bound(a_subject(), coverage=0.95)
