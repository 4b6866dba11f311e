"""What a shadow shows: rows scored before they are learned, and the rules of its promotion."""

from __future__ import annotations

import json
import math

import pytest
from tests.unit.calibration.builders import GB, a_history, a_subject, an_observation

from peakgate.calibration import Calibrator, Snapshot, Trial
from peakgate.calibration.calibrator import replay
from peakgate.calibration.trial import GROUP_ROWS, ROWS, ROWS_AGAINST_NOTHING


def a_trial(*, rows: int, misses: int = 0, bound_gb: float = 44.0, active_gb: float = 44.0, group: str = "h100/fsdp/one") -> Trial:
    """One of rows that needed 40 GB; a miss needed 45."""
    trial = Trial(coverage=0.95)
    scored(trial, rows=rows, misses=misses, bound_gb=bound_gb, active_gb=active_gb, group=group)
    return trial


def scored(trial: Trial, *, rows: int, misses: int, bound_gb: float = 44.0, active_gb: float = 44.0, group: str) -> None:
    """More rows of a group."""
    for number in range(rows):
        need_gb = 45.0 if number < misses else 40.0
        trial.score(an_observation(need_gb, of=a_subject(group=group)), round(active_gb * GB), round(bound_gb * GB))


def failed(trial: Trial) -> list[str]:
    """Names of the rules that do not hold."""
    return [rule.name for rule in trial.rules() if not rule.holds]


def test_a_trial_that_shows_enough_passes() -> None:
    """500 exact rows, 1.2 α of them missed, and bounds 5 % above the active ones."""
    trial = a_trial(rows=ROWS, misses=30, bound_gb=44.0, active_gb=44.0 / 1.049)
    assert (trial.passed, trial.misses) == (True, 30)


@pytest.mark.parametrize(
    ("rows", "misses", "active_gb", "want"),
    [
        (ROWS - 1, 0, 44.0, ["exact_rows"]),
        (ROWS, 31, 44.0, ["miss_rate"]),
        (ROWS, 0, 44.0 / 1.051, ["mean_bound_ratio"]),
        (0, 0, 44.0, ["exact_rows", "miss_rate", "mean_bound_ratio"]),
    ],
    ids=["rows", "misses", "bounds", "nothing"],
)
def test_each_rule_can_fail(rows: int, misses: int, active_gb: float, want: list[str]) -> None:
    """By one row, one miss, a thousandth of a bound; what is not known does not hold."""
    assert failed(a_trial(rows=rows, misses=misses, active_gb=active_gb)) == want


def test_a_group_with_many_misses_is_named() -> None:
    """Once it has enough rows: 4 α are 12 of 60."""
    trial = a_trial(rows=ROWS)
    scored(trial, rows=GROUP_ROWS - 1, misses=13, group="small")
    assert failed(trial) == []
    scored(trial, rows=1, misses=0, group="small")
    assert failed(trial) == ["worst_group_miss_rate"]
    rule = trial.rules()[2]
    assert rule.group == "small"
    assert [rule.figure, rule.limit] == pytest.approx([13 / 60, 0.2])


def test_a_lower_end_counts_only_above_the_bound() -> None:
    """Below it, it says nothing; it is no exact row either way, and no bound of it counts."""
    trial = Trial(coverage=0.95)
    for need_gb in (30.0, 45.0):
        trial.score(an_observation(need_gb, exact=False), 46 * GB, 44 * GB)
    assert (trial.rows, trial.exact_rows, trial.misses, trial.active_misses) == (1, 0, 1, 0)
    assert math.isnan(trial.rules()[3].figure)


def test_the_need_is_held_against_both_bounds_as_they_are_before_it_is_learned() -> None:
    """At the coverage of the trial."""
    active, shadow = replay(a_history(80)).snapshot(), replay(a_history(80, shift_gb=2.0)).snapshot()
    for coverage in (0.9, 0.99):
        trial, subject = Trial(coverage=coverage), a_subject()
        want = tuple(each.bound(subject, coverage=coverage).bound_bytes for each in (active, shadow))
        assert trial.bounds(subject, active, shadow) == want


def test_a_state_gives_an_equal_trial() -> None:
    """Through JSON, also where it has nothing to tell yet."""
    for trial in (Trial(coverage=0.95, rows_needed=ROWS_AGAINST_NOTHING), a_trial(rows=70, misses=3)):
        again = Trial.from_state(json.loads(json.dumps(trial.state())))
        assert again == trial
    with pytest.raises((KeyError, TypeError, ValueError)):
        Trial.from_state({"groups": 3})


def test_history_beats_nothing_within_its_rows() -> None:
    """A shadow that is told sixty jobs beside a calibration that knows none passes: its bound has come down, and it misses no more."""
    shadow, trial = Calibrator(), Trial(coverage=0.95, rows_needed=ROWS_AGAINST_NOTHING)
    nothing = Snapshot()
    for observation in a_history(120, seed=4):
        bounds = trial.bounds(observation.subject, nothing, shadow.snapshot())
        if shadow.learn(observation).learned:
            trial.score(observation, *bounds)
    assert failed(trial) == []
    assert trial.bound_sum < trial.active_bound_sum
