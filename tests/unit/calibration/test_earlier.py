"""A calibrator's state as the version before stored it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.unit.calibration.builders import GB, a_calibrator, a_history, a_subject, an_observation

from peakgate.calibration import Calibrator
from peakgate.calibration.calibrator import STATE_FORMAT
from peakgate.calibration.earlier import NAMED_VERSIONS
from peakgate.calibration.versions import KEPT_ROWS, NAMES


def as_before(calibrator: Calibrator, *names: str) -> dict[str, Any]:
    """Its state in format 3, in which each level named the versions that it had met, as JSON gives it back."""
    state: dict[str, Any] = json.loads(json.dumps(calibrator.state()))
    del state["keys"], state["versions"]
    for values in state["nodes"].values():
        values[-1] = list(names)
    return state | {"format": NAMED_VERSIONS}


def test_a_state_of_before_goes_on() -> None:
    """What was learned holds to the last bit; a version that its levels had met is no news, another one is."""
    calibrator = a_calibrator(a_history(200))
    again = Calibrator.from_state(as_before(calibrator, "torch 2.7", "torch 2.8"))
    for version in ("", "torch 2.7", "torch 2.8"):
        subject = a_subject(version=version)
        assert again.snapshot().bound(subject, coverage=0.95) == calibrator.snapshot().bound(a_subject(), coverage=0.95)
    known, new = (again.snapshot().bound(a_subject(version=version), coverage=0.95).bound_bytes for version in ("torch 2.8", "torch 2.9"))
    assert new - known > 0.5 * GB
    assert again.learn(an_observation(40, at=1000, of=a_subject(version="torch 2.7", user="user-1"))).learned
    assert again.alarms == calibrator.alarms
    assert again.state()["format"] == STATE_FORMAT


def test_what_the_table_cannot_hold_is_new_again() -> None:
    """More names than it has places: as many as it has are known, and the state is one of today."""
    names = [f"torch 2.{index}" for index in range(NAMES + 5)]
    again = Calibrator.from_state(as_before(a_calibrator(a_history(20)), *names))
    assert len(again.snapshot().versions) == NAMES
    assert Calibrator.from_state(json.loads(json.dumps(again.state()))).state() == again.state()


def test_it_goes_on_alike_after_a_restart() -> None:
    """None of the versions that were taken over was seen in a row since: which one gives way does not depend on when it was read."""
    names = [f"torch 2.{index}" for index in range(NAMES)]
    goes_on = Calibrator.from_state(as_before(a_calibrator(a_history(20)), *names))
    for row in a_history(KEPT_ROWS, start=100, version="torch 2.63"):
        goes_on.learn(row)
    restarted = Calibrator.from_state(json.loads(json.dumps(goes_on.state())))
    for each in (goes_on, restarted):
        for row in a_history(40, start=100 + KEPT_ROWS, version="torch 3.0"):
            each.learn(row)
    assert goes_on.state() == restarted.state()
    assert "torch 3.0" in goes_on.snapshot().versions


@pytest.mark.parametrize("nodes", [[], {"group g": 3}, {"group g": []}, {"group g": [1.0, 5]}])
def test_a_state_of_before_that_is_none_is_refused(nodes: object) -> None:
    """As any other, with one kind of error."""
    state = as_before(a_calibrator(a_history(20))) | {"nodes": nodes}
    with pytest.raises(ValueError, match="cannot be read"):
        Calibrator.from_state(state)
