"""A row that a person vouches for: neither its size nor its user keeps it out; what is no size still does."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.calibration.builders import a_history, a_subject, an_observation

from peakgate.calibration import Calibrator, Observation
from peakgate.calibration.calibrator import OUT_OF_ORDER, replay
from peakgate.calibration.gate import FAR_ABOVE_PREDICTION, INTERVAL_INVALID, USER_QUARANTINED, VALUE_INVALID


def suspect() -> tuple[Calibrator, Observation]:
    """A calibrator that has found a user far off, and one more job of theirs."""
    calibrator = replay(a_history(80))
    rows = [an_observation(43.5, at=100.0 + at, of=a_subject(user="eve")) for at in range(20)]
    for row in rows:
        reason = calibrator.learn(row).reason
    assert reason == USER_QUARANTINED
    return calibrator, an_observation(43.5, at=200.0, of=a_subject(user="eve"))


def test_a_released_row_of_any_size_is_learned() -> None:
    """And moves the group as any other."""
    calibrator, row = replay(a_history(80)), an_observation(70.0, at=100.0)
    assert replay(a_history(80)).learn(row).reason == FAR_ABOVE_PREDICTION
    assert calibrator.learn(replace(row, released=True)).learned
    assert calibrator.snapshot().observations(row.subject) == replay(a_history(80)).snapshot().observations(row.subject) + 1


def test_a_released_row_of_a_quarantined_user_is_learned() -> None:
    """The next one of theirs is not."""
    calibrator, row = suspect()
    assert calibrator.learn(replace(row, released=True)).learned
    assert calibrator.learn(an_observation(43.5, at=300.0, of=row.subject)).reason == USER_QUARANTINED


@pytest.mark.parametrize(
    ("changes", "want"),
    [({"lower_bytes": -1}, VALUE_INVALID), ({"finished_at": float("nan")}, VALUE_INVALID), ({"upper_bytes": 1}, INTERVAL_INVALID)],
    ids=["negative", "no time", "ends crossed"],
)
def test_a_word_does_not_make_a_figure(changes: dict[str, float], want: str) -> None:
    """NaN, negative sizes and intervals that are none are never learned."""
    row = replace(an_observation(at=100.0), released=True, **changes)  # type: ignore[arg-type]  # that is the test
    assert Calibrator().learn(row).reason == want


def test_a_released_row_keeps_its_place() -> None:
    """It is no younger for being released: it is learned by a replay, in its order."""
    calibrator = replay(a_history(80))
    assert calibrator.learn(replace(an_observation(at=3.5), released=True)).reason == OUT_OF_ORDER
