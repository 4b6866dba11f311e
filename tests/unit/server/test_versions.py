"""Why a version is kept, and what is told of it."""

from __future__ import annotations

import pytest
from tests.unit.calibration.builders import a_calibrator, a_history, a_subject, an_observation

from peakgate.calibration import Calibrator
from peakgate.server.clock import DAY_US
from peakgate.server.errors import PeakgateError
from peakgate.server.switching import LONGEST_BY, LONGEST_REASON, Wish
from peakgate.server.versions import kind_and_note, switch_note


def after(calibrator: Calibrator, *needs_gb: float) -> Calibrator:
    """A copy that has learned these needs of jobs of several users that were predicted to need 40 GB."""
    copy = Calibrator.from_state(calibrator.state())
    for number, need_gb in enumerate(needs_gb):
        assert copy.learn(an_observation(need_gb, at=10_000.0 + number, of=a_subject(user=f"user-{number}"))).learned
    return copy


@pytest.mark.parametrize(
    ("before_us", "now_us", "want"),
    [(0, 5, "daily"), (5, 6, ""), (DAY_US - 1, DAY_US, "daily"), (DAY_US, 2 * DAY_US - 1, ""), (DAY_US, 9 * DAY_US, "daily")],
    ids=["the first", "one more", "at midnight", "in the evening", "after days"],
)
def test_the_first_version_of_a_day_is_kept(before_us: int, now_us: int, want: str) -> None:
    """Of a day of UTC, by when the version was made that it was made from."""
    calibrator = a_calibrator(a_history(5))
    assert kind_and_note(calibrator, after(calibrator, 40.0), before_us=before_us, now_us=now_us) == (want, "")


@pytest.mark.parametrize(("shift_gb", "want"), [(9.0, "needs rose"), (-9.0, "needs fell")], ids=["up", "down"])
def test_a_version_after_which_a_level_has_moved_says_which_and_where_to(shift_gb: float, want: str) -> None:
    """Both levels of the jobs, and that only once."""
    calibrator = a_calibrator(a_history(60, scatter=0.3))
    moved = after(calibrator, *([40.0 + shift_gb] * 6))
    kind, note = kind_and_note(calibrator, moved, before_us=5, now_us=6)
    assert kind == "alarm"
    assert note == f"framework fsdp: {want}; group h100/fsdp/one: {want}"
    settled = Calibrator.from_state(moved.state())
    settled.learn(an_observation(40.0 + shift_gb, at=20_000.0))
    assert kind_and_note(moved, settled, before_us=5, now_us=6) == ("", "")


def test_a_new_version_of_the_software_is_told() -> None:
    """It costs certainty like a level that has moved, and is kept no longer than others."""
    calibrator = a_calibrator(a_history(20, version="torch 2.7"))
    upgraded = Calibrator.from_state(calibrator.state())
    for row in a_history(2, start=10_000, version="torch 2.8"):  # of two users: then it is known
        upgraded.learn(row)
    kind, note = kind_and_note(calibrator, upgraded, before_us=5, now_us=6)
    assert (kind, note.count("a version that it had not met")) == ("", 2)


def test_many_levels_are_counted() -> None:
    """A note is one line."""
    before = a_calibrator(row for number in range(4) for row in a_history(3, start=1 + 10 * number, framework=f"f{number}", version="1"))
    upgraded = Calibrator.from_state(before.state())
    for number in range(4):
        for row in a_history(2, start=1000 + 10 * number, framework=f"f{number}", version="2"):
            upgraded.learn(row)
    _, note = kind_and_note(before, upgraded, before_us=5, now_us=6)
    assert note.endswith(" and 2 more")
    assert note.count(";") == 2


def test_the_note_of_a_switch_says_when_who_and_why() -> None:
    """As far as it was said."""
    found = switch_note(at_us=10 * DAY_US, by="ada", reason="misses since the upgrade")
    assert found == " on 1970-01-11 00:00 UTC by ada: misses since the upgrade"
    whens = [switch_note(at_us=DAY_US, by=by, reason=reason) for by, reason in (("", "why"), ("ada", ""), ("", ""))]
    assert whens == [f" on 1970-01-02 00:00 UTC{rest}" for rest in (": why", " by ada", "")]


@pytest.mark.parametrize(
    "wish", [{"by": "x" * (LONGEST_BY + 1)}, {"reason": "x" * (LONGEST_REASON + 1)}, {"reason": "two\nlines"}, {"by": "a\x00"}]
)
def test_what_fits_no_note_is_refused(wish: dict[str, str]) -> None:
    """With the field."""
    with pytest.raises(PeakgateError) as caught:
        Wish(**wish)
    assert caught.value.reason == "FIELD_INVALID"
