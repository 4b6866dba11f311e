"""The agent's check-up."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.unit.agent.builders import a_row

from peakgate.agent.doctor import (
    cgroup_finding,
    clock_finding,
    control_finding,
    environment_finding,
    jobs_folder_finding,
    spool_finding,
)
from peakgate.agent.spool import Spool


def folders(root: Path, *names: str) -> Path:
    """A tree of control groups."""
    for name in names:
        (root / name).mkdir(parents=True)
    return root


@pytest.mark.parametrize(
    ("names", "outcome", "want"),
    [
        (["memory", "cpu"], "passed", "version 1 at"),
        (["memory/slurm_node1/uid_1"], "passed", "Slurm"),
        (["memory", "unified"], "passed", "version 2 beside it"),
        ([], "failed", "no control groups"),
    ],
)
def test_the_form_of_control_groups_is_told(tmp_path: Path, names: list[str], outcome: str, want: str) -> None:
    """Version 1, both, or none."""
    finding = cgroup_finding(folders(tmp_path, *names))
    assert (finding.outcome, want in finding.seen) == (outcome, True)


@pytest.mark.parametrize(("job", "want"), [("job_402", ", Slurm"), ("s0123456789abc", ", Slurm's jobs by SLUID")])
def test_slurms_names_are_told(tmp_path: Path, job: str, want: str) -> None:
    """Version 2, with jobs by number or by SLUID."""
    root = folders(tmp_path, f"system.slice/slurmstepd.scope/{job}")
    (root / "cgroup.controllers").touch()
    assert cgroup_finding(root).seen.endswith(want)


def test_environments_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    """As a user without the right to; root reads all."""
    for pid, owner in ((7, os.geteuid()), (8, os.geteuid() + 1)):
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "environ").write_bytes(b"A=1\0")
        if os.geteuid() == 0:
            os.chown(tmp_path / str(pid), owner, -1)
    finding = environment_finding(tmp_path)
    assert finding.outcome == "passed"
    (tmp_path / "8" / "environ").unlink()
    (tmp_path / "8" / "environ").symlink_to("environ")  # opening it is an error for root as well
    assert environment_finding(tmp_path).outcome == ("noted" if os.geteuid() == 0 else "passed")


def test_the_spool_is_told(tmp_path: Path) -> None:
    """Not made yet, with rows, no spool at all, or of another version."""
    path = tmp_path / "agent.db"
    assert spool_finding(path).seen.endswith("not made yet")
    spool = Spool(path=path)
    spool.put(rows=[a_row()])
    assert spool_finding(path).seen.endswith("1 rows and 0 job ends wait")
    spool.close()
    (tmp_path / "note.txt").write_text("no spool, but a text that is long enough to be no header of SQLite" * 9)
    assert spool_finding(tmp_path / "note.txt").outcome == "failed"


def test_the_jobs_folder_is_told(tmp_path: Path) -> None:
    """It is only there where a prolog writes it."""
    assert jobs_folder_finding(tmp_path / "nowhere").outcome == "noted"
    (tmp_path / "GPU-1.json").write_text("{}")
    assert jobs_folder_finding(tmp_path).seen.endswith("1 files")


@contextmanager
def answering(path: Path, answer: bytes) -> Iterator[None]:
    """Something on the control socket that gives this answer once."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind(str(path))
        listening.listen()

        def serve() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(100)
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield
        thread.join()


def test_a_running_agent_is_told(tmp_path: Path) -> None:
    """Its state; or that none answers; or that what answers is no agent."""
    path = tmp_path / "control.sock"
    assert control_finding(path).outcome == "noted"
    with answering(path, b'{"state": "paused"}\n'):
        assert control_finding(path).seen.startswith("paused")
    path.unlink()
    with answering(path, b"HTTP/1.1 400\n"):
        assert control_finding(path).outcome == "noted"


def test_a_service_that_is_away_is_told() -> None:
    """Its clock cannot be compared then."""
    assert clock_finding("127.0.0.1:1").outcome == "failed"
