"""A file that operators change while the gate runs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from peakgate.hooks.live_file import LiveFile


def number(path: Path) -> int:
    """The content of a file."""
    return int(path.read_text())


def a_file(path: Path, told: list[str], without: int | None = None) -> LiveFile[int]:
    """A file that holds a number."""
    return LiveFile(path, number, lambda level, text: told.append(f"{level}: {text}"), fault=ValueError, without=without)


def test_a_change_is_in_force_at_once(tmp_path: Path) -> None:
    """In place or by another file under its name; it is read once a change."""
    path, told = tmp_path / "file", list[str]()
    path.write_text("1")
    live = a_file(path, told)
    assert [live.current(), live.current()] == [1, 1]
    path.write_text("22")
    assert [live.current(), live.current()] == [22, 22]
    (tmp_path / "new").write_text("33")
    os.utime(tmp_path / "new", ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns))
    (tmp_path / "new").rename(path)
    assert live.current() == 33
    assert told == [f"info: {path} was read again"] * 2


def test_a_broken_file_leaves_what_it_said_before(tmp_path: Path) -> None:
    """Said once; mended, it is read again."""
    path, told = tmp_path / "file", list[str]()
    path.write_text("1")
    live = a_file(path, told)
    path.write_text("broken")
    assert [live.current(), live.current(), live.is_stale] == [1, 1, True]
    assert len(told) == 1
    assert "what it said before stays in force" in told[0]
    path.write_text("333")
    assert [live.current(), live.is_stale] == [333, False]


def test_a_gate_does_not_begin_with_a_broken_file(tmp_path: Path) -> None:
    """Nor without one that it needs."""
    path = tmp_path / "file"
    with pytest.raises(OSError, match="No such file"):
        a_file(path, [])
    path.write_text("broken")
    with pytest.raises(ValueError, match="invalid literal"):
        a_file(path, [], without=0)


def test_a_file_that_need_not_be_there_may_come_and_go(tmp_path: Path) -> None:
    """What holds without it holds meanwhile."""
    path = tmp_path / "file"
    live = a_file(path, [], without=0)
    found = [live.current()]
    path.write_text("5")
    found.append(live.current())
    path.unlink()
    found.append(live.current())
    assert found == [0, 5, 0]
