"""Bad input and attacks, each with its outcome: the next job's bound is what it was, or safely wider."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.calibration.builders import GB, a_calibrator, a_history, a_subject, an_observation, bound_gb

from peakgate.calibration import Calibrator, Observation, Subject

HISTORY = a_history(300)
MIB_FOR_MB = 1.0486


def reasons_of(calibrator: Calibrator, *observations: Observation) -> set[str]:
    """What became of them."""
    return {calibrator.learn(observation).reason for observation in observations}


def after(bad: list[Observation]) -> float:
    """The bound after good rows with every tenth followed by a bad one, its time set to come next."""
    calibrator = Calibrator()
    for index, row in enumerate(HISTORY):
        calibrator.learn(row)
        if index % 10 == 0:
            calibrator.learn(replace(bad[index // 10 % len(bad)], finished_at=row.finished_at + 0.5, prediction=f"bad/{index}"))
    return bound_gb(calibrator)


@pytest.mark.parametrize(
    ("bad", "largest_change_gb"),
    [
        ([an_observation(79.9, of=a_subject(required_gb=70))], 0.0),  # another process: the whole card
        ([an_observation(4), an_observation(0.001)], 0.0),  # nonsense
        ([an_observation(40 * MIB_FOR_MB), an_observation(40 / MIB_FOR_MB)], 0.6),  # MB for MiB, which looks like a job
        ([an_observation(41.94 * 1000), an_observation(0.04)], 0.0),  # MB for GB
        ([an_observation(40 * 1024), an_observation(40 / 1024)], 0.0),  # KiB for bytes, and the other way round
        ([replace(an_observation(), lower_bytes=-5), replace(an_observation(), upper_bytes=1)], 0.0),
        ([an_observation(12, exact=False)], 0.1),  # out of memory for another reason: censored
        ([an_observation(38, exact=False)], 0.25),
    ],
)
def test_a_tenth_of_bad_rows_hardly_moves_the_bound(bad: list[Observation], largest_change_gb: float) -> None:
    """What the gate sees moves nothing but the rhythm of the curve; what looks like a job moves it by little."""
    assert after(bad) == pytest.approx(bound_gb(a_calibrator(HISTORY)), abs=largest_change_gb + 0.05)


def test_rows_that_come_again_or_too_late_change_nothing() -> None:
    """The state is equal to the last bit; a repeat under a later time is known by its prediction."""
    calibrator = a_calibrator(HISTORY)
    before = calibrator.state()
    again, late, renamed = HISTORY[-1], replace(HISTORY[5], prediction="late"), replace(HISTORY[7], finished_at=1e6)
    assert [reasons_of(calibrator, row) for row in (again, late, renamed)] == [{"DUPLICATE"}, {"OUT_OF_ORDER"}, {"DUPLICATE"}]
    assert calibrator.state() == before


def test_a_row_from_the_future_does_not_shut_out_the_present() -> None:
    """It is refused by the time it was received, and the next row is in order."""
    calibrator = a_calibrator(HISTORY)
    future = replace(an_observation(at=4e9), received_at=1000.0)
    assert reasons_of(calibrator, future) == {"FUTURE_DATED"}
    assert calibrator.learn(an_observation(at=1000)).learned


def test_not_a_number_is_no_time_and_no_size() -> None:
    """Refused, and the state stays what JSON can hold."""
    calibrator, nan = a_calibrator(HISTORY), float("nan")
    before = calibrator.state()
    rows = (replace(an_observation(), finished_at=nan), replace(an_observation(at=1e6), upper_bytes=nan))  # type: ignore[arg-type]  # a broken sender
    assert reasons_of(calibrator, *rows) == {"VALUE_INVALID"}
    assert calibrator.state() == before


def test_bad_rows_in_the_rhythm_of_the_curve_do_not_stop_it() -> None:
    """With every tenth row kept out the curve is drawn all the same."""
    calibrator = Calibrator()
    for index, row in enumerate(HISTORY, 1):
        calibrator.learn(row if index % 10 else replace(row, lower_bytes=1, upper_bytes=2))
    assert calibrator.snapshot().curve.scores


def attack(factor: float, *, rows: int = 600) -> Calibrator:
    """One user sends a tenth of the jobs, which need `factor` times what is predicted."""
    calibrator = Calibrator()
    for index, row in enumerate(a_history(rows)):
        if index % 10 == 5:
            subject = replace(row.subject, user="mallory")
            need_bytes = round(factor * subject.required_bytes)
            calibrator.learn(replace(row, subject=subject, lower_bytes=need_bytes, upper_bytes=need_bytes))
        else:
            calibrator.learn(row)
    return calibrator


@pytest.mark.parametrize("factor", [1.4, 0.8])
def test_a_user_who_declares_wrongly_does_not_widen_the_bounds_of_others(factor: float) -> None:
    """Quarantined; the honest users' bound stays within half a scale, and the calibration is still trusted."""
    calibrator = attack(factor)
    honest = a_calibrator(a_history(600))
    assert bound_gb(calibrator) == pytest.approx(bound_gb(honest), abs=0.5 * a_subject().scale)
    assert calibrator.snapshot().trusted_bound(a_subject(), coverage=0.95).distrust == ()


def test_who_under_declares_pays_for_it() -> None:
    """The attacker's own bound is higher by the mean score; who asks for too much gets back what a leaning may be."""

    def extra(factor: float) -> float:
        calibrator = attack(factor)
        return bound_gb(calibrator, of=a_subject(user="mallory")) - bound_gb(calibrator, of=a_subject(user="user-3"))

    assert extra(1.4) > 2.5 * a_subject().scale
    assert -2.5 * a_subject().scale < extra(0.8) <= 0.0


def test_a_silent_upgrade_is_learned_and_nobody_is_blamed() -> None:
    """All jobs of a framework come to need 2 GB more: alarms, no quarantine, and within 60 rows the bound covers them.

    What was scored under the level that was wrong is gone from the curve.
    """
    calibrator = a_calibrator(a_history(300))
    before, refused = bound_gb(calibrator), 0
    for row in a_history(60, start=301, seed=4, shift_gb=2.0):
        refused += not calibrator.learn(row).learned
    assert calibrator.alarms >= 1
    assert refused == 0
    assert before + 1.5 < bound_gb(calibrator) < before + 3.5
    assert calibrator.snapshot().curve.quantile(0.01) < 1.5 * a_calibrator(a_history(300)).snapshot().curve.quantile(0.01)


def a_wrong_prior(user: str = "ada") -> Subject:
    """A job whose prior of the runtime is 6 GB too high."""
    return a_subject(required_gb=46, runtime_gb=8, user=user)


def test_a_wrong_prior_is_unlearned() -> None:
    """6 GB too high: after forty jobs the bound is a GB or two above the need, and nothing was kept out."""
    calibrator = Calibrator()
    for index in range(40):
        outcome = calibrator.learn(an_observation(40, at=index + 1.0, of=a_wrong_prior(f"user-{index % 8}")))
        assert outcome.learned, outcome.message
    assert bound_gb(Calibrator(), of=a_wrong_prior()) > 47
    assert 40 < bound_gb(calibrator, of=a_wrong_prior()) < 42.5


def test_without_feedback_the_bound_stays_the_prior() -> None:
    """When everything is rejected and nothing reports, nothing moves: the same bound for ever, no tightening and no spiral."""
    calibrator = Calibrator()
    first = calibrator.snapshot().trusted_bound(a_subject(), coverage=0.95)
    later = calibrator.snapshot().trusted_bound(a_subject(), coverage=0.95, now=1e9)
    assert first == later
    assert first.bound_bytes < (40 + 12) * GB
    assert calibrator.version == "1.0"


def test_only_out_of_memory_reports_never_narrow_a_bound() -> None:
    """A hundred lower bounds and not one need: the quantile goes to its limit."""
    calibrator = Calibrator()
    for index in range(100):
        calibrator.learn(an_observation(39, at=index + 1.0, of=a_subject(user=f"user-{index % 20}"), exact=False))
    assert bound_gb(calibrator) > bound_gb(Calibrator())
