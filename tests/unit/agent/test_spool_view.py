"""The spool looked at from outside, and what the agent shows of it."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.agent.builders import GIB, START, a_key, a_row, an_event

from peakgate.agent.errors import UsageError
from peakgate.agent.peaks import Flag
from peakgate.agent.plain import plain
from peakgate.agent.samples import Kind
from peakgate.agent.spool import Spool
from peakgate.agent.spool_view import SpoolView
from peakgate.agent.tables import PEAKS_HEAD, report


def test_what_waits_is_seen_while_the_agent_writes(tmp_path: Path) -> None:
    """Rows and job ends of an open spool; the view changes nothing and sees the next row too."""
    spool = Spool(path=tmp_path / "agent.db")
    spool.put(rows=[a_row()], events=[an_event()])
    with closing(SpoolView(tmp_path / "agent.db")) as view:
        assert (view.rows(), view.events()) == ([a_row()], [an_event()])
        spool.put(rows=[a_row(a_key(pid=9))])
        assert len(view.rows()) == 2
    assert spool.waiting() == 3
    spool.close()


def test_the_oldest_row_is_known(tmp_path: Path) -> None:
    """None waits; then the one that was not changed for longest."""
    spool = Spool(path=tmp_path / "agent.db")
    assert spool.oldest_time() is None
    spool.put(rows=[a_row(a_key(pid=9), time=START + 50), a_row(time=START + 10)])
    assert spool.oldest_time() == START + 10
    spool.close()


def test_a_file_of_another_version_is_told(tmp_path: Path) -> None:
    """With both versions; a file that is not there is not made."""
    with closing(sqlite3.connect(tmp_path / "old.db")) as connection:
        connection.execute("PRAGMA user_version = 7")
    with pytest.raises(UsageError, match="is of version 7 of the spool"):
        SpoolView(tmp_path / "old.db")
    with pytest.raises(UsageError, match="--spool"):
        SpoolView(tmp_path / "nowhere.db")
    assert not (tmp_path / "nowhere.db").exists()


def test_a_report_is_json_and_tables() -> None:
    """Flags are words, the pid of a whole job is `all`, an Xid stands beside the flags."""
    row = replace(a_row(a_key(pid=0), peak_bytes=5 * GIB, flags=Flag.CENSORED | Flag.MPS, ended=True), xid=79)
    found, tables = report([row], [an_event()])
    assert json.loads(json.dumps(found))["peaks"][0]["flags"] == ["censored", "mps"]
    (head, rows), (_, events) = tables
    assert dict(zip(head, rows[0], strict=True)) | {"last seen": ""} == dict.fromkeys(PEAKS_HEAD, "") | {
        "gpu": row.key.gpu_uuid, "job": "402", "pid": "all", "source": "sampled", "peak": "5.00 GiB", "samples": "1", "gaps": "0",
        "flags": "censored mps ended xid=79", "prediction": "predictions/p1",
    }  # fmt: skip
    assert events[0][:2] == ("402", "finished")


def test_what_json_does_not_have_is_text() -> None:
    """Paths and the like; a combination of kinds is a list."""
    assert plain({7: (Kind.COMPUTE | Kind.MPS, Path("/x"), None, 1.5, True)}) == {"7": [["compute", "mps"], "/x", None, 1.5, True]}
