"""The journal: whole lines, whatever becomes of the file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from peakgate.hooks.slurm.journal import Decision, Journal, decisions


def a_decision(number: int) -> Decision:
    """A decision of a user of that number."""
    return Decision(time="2026-01-01T00:00:00.000+00:00", operation="submit", cluster="c", uid=number, job_name="x\n\ud800")


def test_each_decision_is_a_line(tmp_path: Path) -> None:
    """In their order, with any name of a job."""
    journal = Journal(tmp_path / "journal", lambda level, text: None)
    for number in range(100):
        journal.note(a_decision(number))
    journal.close()
    found = list(decisions(tmp_path / "journal"))
    assert [each["uid"] for each in found] == list(range(100))
    assert (found[0]["job_name"], journal.lost) == ("x\n\ud800", 0)
    assert (tmp_path / "journal").stat().st_mode & 0o777 == 0o640


def test_a_file_that_is_rotated_away_is_made_anew(tmp_path: Path) -> None:
    """Without a signal; not a line is lost or cut."""
    path, journal = tmp_path / "journal", Journal(tmp_path / "journal", lambda level, text: None)
    for number in range(50):
        journal.note(a_decision(number))
        if number == 20:
            while not path.exists():
                pass
            path.rename(tmp_path / "journal.1")
    journal.close()
    found = [each["uid"] for name in ("journal.1", "journal") for each in decisions(tmp_path / name)]
    assert found == list(range(50))


def test_what_cannot_be_written_is_counted_and_said_once(tmp_path: Path) -> None:
    """A folder that is not there holds up nobody."""
    told = list[str]()
    journal = Journal(tmp_path / "none" / "journal", lambda level, text: told.append(text))
    for number in range(3):
        journal.note(a_decision(number))
    journal.close()
    assert (journal.lost, len(told)) == (3, 1)
    assert "cannot be written" in told[0]


def test_a_line_that_was_cut_off_is_left_out(tmp_path: Path) -> None:
    """What a crash leaves."""
    path = tmp_path / "journal"
    path.write_bytes(a_decision(1).line() + b'{"uid": 2, "ti\n' + b"[]\n" + a_decision(3).line())
    assert [each["uid"] for each in decisions(path)] == [1, 3]


@pytest.mark.parametrize("name", ["verdict", "prediction", "outcome", "by", "mode", "bound_bytes", "milliseconds"])
def test_a_line_has_what_a_report_reads(name: str) -> None:
    """Every word, also where nothing is known."""
    assert name in json.loads(a_decision(1).line())
