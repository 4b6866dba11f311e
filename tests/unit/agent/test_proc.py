"""/proc of this process and of made-up ones."""

from __future__ import annotations

import os
from pathlib import Path

from tests.unit.agent.builders import ProcTree

from peakgate.agent.proc import ProcFolder


def test_a_name_with_parentheses_does_not_shift_the_fields(tmp_path: Path) -> None:
    """The start is counted from the last closing parenthesis of the line."""
    ProcTree(tmp_path).add(7, start_ticks=123456, uid=1001)
    proc = ProcFolder(root=tmp_path)
    assert (proc.start_ticks(7), proc.uid(7)) == (123456, 1001)


def test_the_real_proc_knows_this_process() -> None:
    """The kernel's own files are understood: this process has a start, an owner and a boot."""
    proc = ProcFolder()
    assert proc.start_ticks(os.getpid()) == proc.start_ticks(os.getpid()) != None  # noqa: E711 (three values in one chain)
    assert proc.uid(os.getpid()) == os.getuid()
    assert len(proc.boot_id()) == 36


def test_only_the_named_variables_are_kept(tmp_path: Path) -> None:
    """Whatever else stands in the environment never leaves /proc."""
    ProcTree(tmp_path).add(7, environment={"PEAKGATE_PREDICTION": "predictions/p1", "AWS_SECRET_ACCESS_KEY": "x", "SLURM_JOB_ID": "9"})
    assert ProcFolder(root=tmp_path).environment(7) == {"PEAKGATE_PREDICTION": "predictions/p1", "SLURM_JOB_ID": "9"}


def test_a_process_that_is_gone_is_absent_and_no_error(tmp_path: Path) -> None:
    """Every question about it has an empty answer."""
    proc = ProcFolder(root=tmp_path)
    assert (proc.start_ticks(7), proc.uid(7), proc.cgroup(7), dict(proc.environment(7)), proc.boot_id()) == (None, None, "", {}, "")
