"""Versions of the margin as a person reads them."""

from __future__ import annotations

from google.protobuf.timestamp_pb2 import Timestamp
from tests.unit.client.test_render import a_console

from peakgate.client.render.calibrations import print_switch, print_version, print_versions
from peakgate.v1.calibration_service_pb2 import Calibration, CalibrationGroup, CalibrationLevel, RollbackCalibrationResponse

NOON = Timestamp(seconds=12 * 3600)


def a_version(**changes: object) -> Calibration:
    """One of an alarm, with a group and a level."""
    values: dict[str, object] = {
        "version": "1.7",
        "state": "active",
        "create_time": NOON,
        "observations": 28,
        "kind": "alarm",
        "note": "group [g]: needs rose",
        "groups": [CalibrationGroup(group="[g]", observations=28, margin_ratio=0.081, median_ratio=1.0427)],
        "levels": [CalibrationLevel(level="group [g]", observations=28, alarms=2, alarmed=True, versions=["torch 2.7", "torch 2.8"])],
    }
    return Calibration(**(values | changes))  # type: ignore[arg-type]  # protobuf checks the types


def test_a_version_is_shown_in_full() -> None:
    """What it is, its margins, and how often its levels have moved; a name in brackets is no markup."""
    console, text = a_console()
    print_version(console, a_version())
    lines = [line.split() for line in text.getvalue().splitlines()]
    assert text.getvalue().startswith(
        "calibration 1.7: active, alarm, made 1970-01-01 12:00 UTC, 28 observations\ngroup [g]: needs rose\ntrusted; "
    )
    assert ["[g]", "+8.1%", "28", "1.043"] in lines
    assert ["group", "[g]", "28", "2,", "one", "open", "torch", "2.7,", "torch", "2.8"] in lines


def test_a_version_that_is_not_trusted_says_why() -> None:
    """By its reasons."""
    console, text = a_console()
    print_version(console, a_version(distrust=["MISSES_TOO_OFTEN"]))
    assert "\nnot trusted: MISSES_TOO_OFTEN\n" in text.getvalue()


def test_what_is_not_known_of_a_version_has_no_table() -> None:
    """A shadow that was just started comes with its groups alone: no heading without a row."""
    console, text = a_console()
    print_version(console, a_version(state="shadow", levels=[]))
    assert "[g]" in text.getvalue()
    assert "versions met" not in text.getvalue()


def test_the_prior_is_said_to_be_one() -> None:
    """With no tables below it."""
    console, text = a_console()
    print_version(console, Calibration(version="1.0", state="active"))
    print_versions(console, [])
    assert text.getvalue().count("the prior's") == 2
    assert "group" not in text.getvalue()


def test_a_list_is_one_row_a_version() -> None:
    """Under headings."""
    console, text = a_console()
    print_versions(console, [a_version(), a_version(version="1.6", state="retired", kind="", note="")])
    rows = [line.split() for line in text.getvalue().splitlines()]
    assert rows[1] == ["1.7", "active", "alarm", "1970-01-01", "12:00", "UTC", "28", "group", "[g]:", "needs", "rose"]
    assert rows[2] == ["1.6", "retired", "1970-01-01", "12:00", "UTC", "28"]


def test_a_switch_says_from_where_to_where() -> None:
    """And what is set aside, and how to get it back; one to the active version is none."""
    console, text = a_console()
    print_switch(console, RollbackCalibrationResponse(calibration=a_version(observations=1), from_version="1.9", set_aside=1))
    print_switch(console, RollbackCalibrationResponse(calibration=a_version(), from_version="1.7"))
    first, second, third = text.getvalue().splitlines()
    assert first == "calibration 1.9 -> 1.7 (made 1970-01-01 12:00 UTC, 1 observation)"
    assert second == "1 observation is set aside; to take in what was observed since: peakgate calibration promote 1.9"
    assert third == "calibration 1.7 was active already"
