"""The margin as it is stored, and what people are shown of its groups."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from tests.unit.calibration.builders import GB, a_history, a_subject, an_observation

from peakgate.calibration import Calibrator
from peakgate.calibration.calibrator import OUT_OF_ORDER
from peakgate.calibration.earlier import NAMED_VERSIONS
from peakgate.server.groups import ROWS
from peakgate.server.margin import Margin, is_of_other_keys, margin_from


def a_margin(*observations: object) -> Margin:
    """One that has learned these."""
    margin = Margin(Calibrator(epoch="test"))
    for each in observations:
        assert margin.learn(each).learned  # type: ignore[arg-type]
    return margin


def test_a_text_gives_an_equal_margin() -> None:
    """Its text, its groups and its snapshot are the same, and so is what it learns next."""
    margin = a_margin(*a_history(30))
    again = margin_from(margin.text())
    for observation in a_history(10, start=31, seed=3):
        assert margin.learn(observation) == again.learn(observation)
    assert (again.text(), again.groups(), again.version) == (margin.text(), margin.groups(), margin.version)


def test_a_copy_learns_for_itself() -> None:
    """The one in use changes only after the commit."""
    margin = a_margin(*a_history(5))
    before = margin.text()
    margin.copy().learn(an_observation(at=9.0))
    assert margin.text() == before


def test_a_margin_of_the_format_before_is_read_and_its_keys_hold() -> None:
    """What it learned goes on; under other keys nothing of it would be found, and it begins anew."""
    margin = a_margin(*a_history(30))
    state = json.loads(margin.text())
    calibrator = state["calibrator"]
    del calibrator["keys"], calibrator["versions"]
    calibrator["format"] = NAMED_VERSIONS
    before = json.dumps(state)
    assert not is_of_other_keys(before)
    assert margin_from(before).groups() == margin.groups()
    assert margin_from(before).version == margin.version
    assert not is_of_other_keys(margin.text())
    assert is_of_other_keys(json.dumps(state | {"calibrator": calibrator | {"format": NAMED_VERSIONS - 1}}))


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"calibrator": {"format": 1}, "groups": {}}', '{"calibrator": 3, "groups": 4}'])
def test_another_text_cannot_be_read(text: str) -> None:
    """Such as one that an older version stored."""
    with pytest.raises(ValueError, match="cannot be read"):
        margin_from(text)


def test_a_group_is_shown_by_a_typical_job() -> None:
    """The median requirement of its newest exact rows and their median of needed over predicted; lower ends say neither."""
    sizes = (10.0, 20.0, 60.0)
    rows = [an_observation(size * 1.1, at=float(at), of=a_subject(required_gb=size)) for at, size in enumerate(sizes, start=1)]
    margin = a_margin(*rows, an_observation(1.0, at=9.0, exact=False))
    (group,) = margin.groups()
    assert (group.group, group.observations) == ("h100/fsdp/one", 3)
    assert group.median_ratio == pytest.approx(1.1)
    typical = replace(rows[1].subject, user="")
    bound_bytes = margin.calibrator.snapshot().bound(typical, coverage=0.95).bound_bytes
    assert group.margin_ratio == bound_bytes / (20 * GB) - 1


def test_a_group_is_shown_by_its_newest_rows() -> None:
    """So many are kept."""
    old = [an_observation(40.0, at=float(at)) for at in range(ROWS)]
    new = [an_observation(42.0, at=float(at)) for at in range(ROWS, 2 * ROWS)]
    (group,) = a_margin(*old, *new).groups()
    assert group.observations == 2 * ROWS
    assert group.median_ratio == pytest.approx(1.05)


def test_a_row_that_is_kept_out_moves_the_version_and_no_group() -> None:
    """What was kept out counts for whether the calibration is trusted; what comes late is not taken in at all."""
    margin = a_margin(an_observation(at=2.0))
    groups, version = margin.groups(), margin.version
    assert margin.learn(an_observation(at=1.0)).reason == OUT_OF_ORDER
    assert margin.version == version
    assert not margin.learn(an_observation(9.0, at=3.0)).learned
    assert margin.groups() == groups
    assert margin.version != version
