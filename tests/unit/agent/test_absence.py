"""What ended while no agent ran."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.agent.builders import GPU, OTHER_GPU, START, ProcTree, a_key, a_row

from peakgate.agent.absence import ended_in_absence
from peakgate.agent.peaks import Flag, JobEvent, PeakRow
from peakgate.agent.proc import ProcFolder

BOOT = "boot-1"
FINISHED = JobEvent(cluster="alpha", job="402", restart=0, prediction="predictions/p1", event="finished", time=START)


@pytest.fixture
def proc(tmp_path: Path) -> ProcTree:
    """A made-up /proc of this boot."""
    tree = ProcTree(tmp_path / "proc")
    boot = tree.root / "sys" / "kernel" / "random"
    boot.mkdir(parents=True)
    (boot / "boot_id").write_text(f"{BOOT}\n")
    return tree


def a_process(pid: int, *, gpu_uuid: str = GPU, boot_id: str = BOOT) -> PeakRow:
    """A row of one process of job 402; it began at 100 ticks."""
    return a_row(a_key(pid=pid, gpu_uuid=gpu_uuid, boot_id=boot_id))


def whole_job(gpu_uuid: str = GPU) -> PeakRow:
    """The row of job 402 on a GPU."""
    return a_row(replace(a_key(pid=0, gpu_uuid=gpu_uuid, boot_id=BOOT), pid_start_ticks=0))


def test_a_job_that_is_gone_has_ended_and_was_cut_off_from_sight(proc: ProcTree) -> None:
    """Its rows end, truncated, and its end is told at the time of the last look."""
    found = ended_in_absence([a_process(7), whole_job()], proc=ProcFolder(root=proc.root))
    assert [(row.key.pid, row.ended, row.flags) for row in found.rows] == [(7, True, Flag.TRUNCATED), (0, True, Flag.TRUNCATED)]
    assert found.events == [FINISHED]


def test_what_still_runs_has_not_ended(proc: ProcTree) -> None:
    """The same pid with the same start."""
    proc.add(7, start_ticks=100)
    found = ended_in_absence([a_process(7), whole_job()], proc=ProcFolder(root=proc.root))
    assert (found.rows, found.events) == ([], [])


def test_a_job_lasts_as_long_as_one_of_its_processes(proc: ProcTree) -> None:
    """On the GPU that it has left its row ends; the attempt goes on."""
    proc.add(7, start_ticks=100)
    rows = [a_process(7), whole_job(), a_process(8, gpu_uuid=OTHER_GPU), whole_job(OTHER_GPU)]
    found = ended_in_absence(rows, proc=ProcFolder(root=proc.root))
    assert [(row.key.gpu_uuid, row.key.pid) for row in found.rows] == [(OTHER_GPU, 8), (OTHER_GPU, 0)]
    assert found.events == []


@pytest.mark.parametrize(("start_ticks", "boot_id"), [(101, BOOT), (100, "boot-0")])
def test_a_pid_that_is_used_again_is_another_process(proc: ProcTree, start_ticks: int, boot_id: str) -> None:
    """With another start, or after another boot."""
    proc.add(7, start_ticks=start_ticks)
    found = ended_in_absence([a_process(7, boot_id=boot_id)], proc=ProcFolder(root=proc.root))
    assert (len(found.rows), found.events) == (1, [FINISHED])


def test_a_stranger_ends_without_an_event(proc: ProcTree) -> None:
    """Nobody waits for one without a prediction."""
    row = a_process(7)
    found = ended_in_absence([replace(row, key=replace(row.key, prediction=""))], proc=ProcFolder(root=proc.root))
    assert (len(found.rows), found.events) == (1, [])
