"""The calibrator: which way a bound moves, what order and repeats change, and what a restart keeps."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from peakgate.calibration import Calibrator, Observation
from peakgate.calibration.calibrator import GROUP_WINDOW

GIGABYTE = 1_000_000_000
GROUP = "huggingface/fsdp/amp-bf16"
SIBLING = "huggingface/ddp/amp-bf16"
TEXTBOOK = "textbook/none/fp32"
REQUIRED_BYTES = 40 * GIGABYTE

NEEDS_GB = st.lists(st.floats(31, 60), min_size=1, max_size=12)
COVERAGES = st.floats(0.01, 0.999)


def an_observation(
    need_gb: float = 40.0, *, prediction: str = "", group: str = GROUP, out_of_memory: bool = False, finished_at: float = 1.0
) -> Observation:
    """A job that was predicted to need 40 GB and needed `need_gb`, or ran out of memory there."""
    need_bytes = round(need_gb * GIGABYTE)
    return Observation(
        prediction=prediction or f"predictions/{group}/{need_gb}/{finished_at}",
        group=group,
        required_bytes=REQUIRED_BYTES,
        device_bytes=REQUIRED_BYTES,
        lower_bytes=need_bytes,
        upper_bytes=None if out_of_memory else need_bytes,
        finished_at=finished_at,
    )


def a_calibrator(*observations: Observation) -> Calibrator:
    """A calibrator that has learned these."""
    calibrator = Calibrator()
    for observation in observations:
        outcome = calibrator.learn(observation)
        assert outcome.learned, outcome.message
    return calibrator


def bound_gb(calibrator: Calibrator, *, group: str = GROUP, required_bytes: int = REQUIRED_BYTES, coverage: float = 0.95) -> float:
    """The bound of the next job in GB."""
    return calibrator.snapshot().bound(group=group, required_bytes=required_bytes, coverage=coverage).bound_bytes / GIGABYTE


def test_the_first_bound_is_the_prior() -> None:
    """0.7 GB and 2 % of 40 GB, 1.6234 times, above the requirement; no observation stands behind it."""
    bound = Calibrator().snapshot().bound(group=GROUP, required_bytes=REQUIRED_BYTES, coverage=0.95)
    assert bound.bound_bytes / GIGABYTE == pytest.approx(40 + 1.6234 * (0.7 + 0.02 * 40), abs=1e-3)
    assert (bound.group, bound.observations) == (GROUP, 0)


def test_a_textbook_job_has_no_margin_before_it_is_observed() -> None:
    """The seeds' figures have no runtime part: the bound is the requirement at every coverage, and it fits or does not."""
    snapshot = Calibrator().snapshot()
    for coverage in (0.5, 0.95, 0.999):
        assert snapshot.bound(group=TEXTBOOK, required_bytes=REQUIRED_BYTES, coverage=coverage).bound_bytes == REQUIRED_BYTES
    assert snapshot.oom_probability(group=TEXTBOOK, required_bytes=REQUIRED_BYTES, usable_bytes=REQUIRED_BYTES) == 0.0
    assert snapshot.oom_probability(group=TEXTBOOK, required_bytes=REQUIRED_BYTES, usable_bytes=REQUIRED_BYTES - 1) == 1.0


@pytest.mark.parametrize("group", [GROUP, TEXTBOOK])
def test_one_observation_moves_the_next_bound_of_its_group(group: str) -> None:
    """A job that needed more than its bound raises the next one, a job that needed less than predicted lowers it."""
    before = bound_gb(Calibrator(), group=group)
    assert bound_gb(a_calibrator(an_observation(before + 1, group=group)), group=group) > before
    assert bound_gb(a_calibrator(an_observation(38, group=group)), group=group) < before


@pytest.mark.parametrize("need_gb", [36.0, 40.0, 46.0])
def test_many_observations_lead_the_bound_to_the_truth(need_gb: float) -> None:
    """Fifty jobs that all needed the same leave a margin of a few scatters above that."""
    rows = [an_observation(need_gb, finished_at=index) for index in range(50)]
    assert need_gb < bound_gb(a_calibrator(*rows)) < need_gb + 1.2


def test_a_job_out_of_memory_above_the_bound_raises_it() -> None:
    """It needed at least that much."""
    before = bound_gb(Calibrator())
    assert bound_gb(a_calibrator(an_observation(before + 2, out_of_memory=True))) > before


def test_a_job_that_died_early_does_not_lower_the_bound() -> None:
    """A lower bound far below the prediction says nothing."""
    assert bound_gb(a_calibrator(an_observation(5, out_of_memory=True))) >= bound_gb(Calibrator())


def test_a_group_without_observations_starts_from_its_framework() -> None:
    """What one group taught moves the middle of a sibling the same way, and less; another framework's still less."""
    learned = a_calibrator(*(an_observation(46, finished_at=index) for index in range(5)))
    middles_gb = [bound_gb(learned, group=group, coverage=0.5) for group in (GROUP, SIBLING, "megatron/zero1/bf16")]
    assert middles_gb == sorted(middles_gb, reverse=True)
    assert middles_gb[-1] > bound_gb(Calibrator(), coverage=0.5)


def test_textbook_jobs_teach_nobody_else() -> None:
    """Their device peaks hold a runtime that their predictions leave out."""
    assert bound_gb(a_calibrator(an_observation(48, group=TEXTBOOK))) == bound_gb(Calibrator())


@given(needs_gb=NEEDS_GB, required=st.tuples(st.integers(0, 200 * GIGABYTE), st.integers(0, 200 * GIGABYTE)), coverage=COVERAGES)
def test_more_required_never_gives_a_smaller_bound(needs_gb: list[float], required: tuple[int, int], coverage: float) -> None:
    """Whatever was learned, a larger job has a larger bound."""
    calibrator = a_calibrator(*(an_observation(need, finished_at=index) for index, need in enumerate(needs_gb)))
    small, large = sorted(required)
    for group in (GROUP, SIBLING, TEXTBOOK):
        assert bound_gb(calibrator, group=group, required_bytes=small, coverage=coverage) <= bound_gb(
            calibrator, group=group, required_bytes=large, coverage=coverage
        )


@given(needs_gb=NEEDS_GB, coverages=st.tuples(COVERAGES, COVERAGES))
def test_a_higher_coverage_never_gives_a_smaller_bound(needs_gb: list[float], coverages: tuple[float, float]) -> None:
    """Being surer costs memory."""
    calibrator = a_calibrator(*(an_observation(need, finished_at=index) for index, need in enumerate(needs_gb)))
    low, high = sorted(coverages)
    for group in (GROUP, SIBLING, TEXTBOOK):
        assert bound_gb(calibrator, group=group, coverage=low) <= bound_gb(calibrator, group=group, coverage=high)


@given(needs_gb=NEEDS_GB, coverage=COVERAGES, usable_bytes=st.integers(30 * GIGABYTE, 60 * GIGABYTE))
def test_the_probability_agrees_with_the_bound(needs_gb: list[float], coverage: float, usable_bytes: int) -> None:
    """The bound fits exactly when the probability of running out of memory is at most what the coverage leaves."""
    snapshot = a_calibrator(*(an_observation(need, finished_at=index) for index, need in enumerate(needs_gb))).snapshot()
    for group in (GROUP, SIBLING):
        bound_bytes = snapshot.bound(group=group, required_bytes=REQUIRED_BYTES, coverage=coverage).bound_bytes
        probability = snapshot.oom_probability(group=group, required_bytes=REQUIRED_BYTES, usable_bytes=usable_bytes)
        assert 0 <= probability <= 1
        # The bound is found to 1e-9 of a spread and rounded up to a byte: within 8 bytes either answer is right.
        if bound_bytes <= usable_bytes:
            assert probability <= 1 - coverage + 1e-9
        elif bound_bytes > usable_bytes + 8:
            assert probability > 1 - coverage - 1e-9


@given(need_gb=st.tuples(st.floats(31, 60), st.floats(31, 60)))
def test_a_job_that_needed_more_never_leaves_a_smaller_bound(need_gb: tuple[float, float]) -> None:
    """The first observation of a group moves its bound with its size."""
    small, large = sorted(need_gb)
    assert bound_gb(a_calibrator(an_observation(small))) <= bound_gb(a_calibrator(an_observation(large))) + 1e-6


@given(needs_gb=NEEDS_GB, seed=st.integers(0, 1000))
def test_order_and_repeats_of_delivery_change_nothing(needs_gb: list[float], seed: int) -> None:
    """The snapshot is a function of the set of observations: equal to the last bit, version included."""
    rows = [an_observation(need, prediction=f"p/{index}", finished_at=index // 2) for index, need in enumerate(needs_gb)]
    shuffled = random.Random(seed).sample(rows, len(rows))
    calibrator = a_calibrator(*shuffled)
    assert [calibrator.learn(row).reason for row in rows] == ["DUPLICATE"] * len(rows)
    assert calibrator.snapshot() == a_calibrator(*rows).snapshot()
    assert calibrator.state() == a_calibrator(*rows).state()


@given(needs_gb=NEEDS_GB)
def test_the_state_round_trips_through_json(needs_gb: list[float]) -> None:
    """A restart keeps the margin to the last bit, and goes on learning from there."""
    rows = [an_observation(need, finished_at=index / 3, out_of_memory=index % 3 == 0) for index, need in enumerate(needs_gb)]
    calibrator = a_calibrator(*rows)
    restarted = Calibrator.from_state(json.loads(json.dumps(calibrator.state())))
    assert restarted.state() == calibrator.state()
    assert restarted.snapshot() == calibrator.snapshot()
    later = an_observation(44, prediction="later", finished_at=99)
    assert restarted.learn(later).learned
    assert calibrator.learn(later).learned
    assert restarted.snapshot() == calibrator.snapshot()


@pytest.mark.parametrize(
    "state",
    [
        {},
        {**Calibrator().state(), "format": 99},
        {**Calibrator().state(), "rows": [[1]]},
        {**Calibrator().state(), "rows": [["p", "g", "a", 1, 1, 1, 1.0]]},
        {**Calibrator().state(), "rows": [["p", "g", -1, 1, 1, 1, 1.0]]},
        {**Calibrator().state(), "count": "x"},
    ],
)
def test_a_state_that_cannot_be_read_is_refused(state: dict[str, object]) -> None:
    """The remedy is in the message: the observations are still there."""
    with pytest.raises(ValueError, match="replay the observations"):
        Calibrator.from_state(state)


def test_every_learned_observation_makes_a_new_version() -> None:
    """Epoch and count; what is kept out changes neither."""
    calibrator = Calibrator(epoch="7")
    versions = [calibrator.snapshot().version]
    for index in range(3):
        calibrator.learn(an_observation(41, finished_at=index))
        versions.append(calibrator.snapshot().version)
    calibrator.learn(an_observation(500))
    assert [*versions, calibrator.snapshot().version] == ["7.0", "7.1", "7.2", "7.3", "7.3"]


def test_a_snapshot_does_not_change_while_the_calibrator_learns() -> None:
    """A prediction in flight sees one version."""
    calibrator = a_calibrator(an_observation(41))
    snapshot = calibrator.snapshot()
    before = snapshot.bound(group=GROUP, required_bytes=REQUIRED_BYTES, coverage=0.95)
    calibrator.learn(an_observation(50))
    assert snapshot.bound(group=GROUP, required_bytes=REQUIRED_BYTES, coverage=0.95) == before


def test_a_larger_peak_of_a_known_prediction_replaces_the_smaller() -> None:
    """Peaks grow while they are gathered: the last word counts once."""
    calibrator = a_calibrator(an_observation(39, prediction="p"), an_observation(45, prediction="p"))
    assert calibrator.snapshot().nodes == a_calibrator(an_observation(45, prediction="p")).snapshot().nodes
    assert calibrator.learn(an_observation(42, prediction="p")).reason == "DUPLICATE"
    assert calibrator.snapshot().bound(group=GROUP, required_bytes=REQUIRED_BYTES, coverage=0.9).observations == 1


def test_a_group_forgets_its_oldest_observations() -> None:
    """After a drift the level follows the newest window, and the count still says how many were seen."""
    old = [an_observation(46, finished_at=index) for index in range(GROUP_WINDOW)]
    new = [an_observation(38, finished_at=1000 + index) for index in range(GROUP_WINDOW)]
    calibrator = a_calibrator(*old, *new)
    assert bound_gb(calibrator) == pytest.approx(bound_gb(a_calibrator(*new)))
    assert calibrator.snapshot().groups()[0].observations == 2 * GROUP_WINDOW


def test_groups_are_listed_with_margin_and_ratio() -> None:
    """The margin is that of the default coverage over a typical job of the group; the ratio is needed over predicted."""
    calibrator = a_calibrator(*(an_observation(44, finished_at=index) for index in range(9)), an_observation(42, group=SIBLING))
    sibling, group = calibrator.snapshot().groups()
    assert (sibling.group, sibling.observations, group.group, group.observations) == (SIBLING, 1, GROUP, 9)
    assert group.median_ratio == pytest.approx(1.1)
    assert group.margin_ratio == pytest.approx(bound_gb(calibrator) / 40 - 1)


@pytest.mark.parametrize("coverage", [0.0, 1.0, -0.5, 95.0, float("nan")])
def test_a_coverage_is_a_probability(coverage: float) -> None:
    """Certainty has no finite bound, and 95 is not 0.95."""
    with pytest.raises(ValueError, match="coverage"):
        Calibrator().snapshot().bound(group=GROUP, required_bytes=1, coverage=coverage)


def test_a_negative_requirement_is_refused() -> None:
    """It would be a defect of the caller."""
    with pytest.raises(ValueError, match="required_bytes"):
        Calibrator().snapshot().bound(group=GROUP, required_bytes=-1, coverage=0.9)
