"""Real process trees: which program each process of them belongs to."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.unit.agent.builders import GPU, ProcTree

from peakgate.agent.attribution import Attribution
from peakgate.agent.cgroup import CgroupJob
from peakgate.agent.jobs_folder import JobsFolder
from peakgate.agent.launch import Place, place_of
from peakgate.agent.proc import ProcessId, ProcFolder

WORK = 'import os, time; os.write(1, b"%d\\n" % os.getpid())\nwhile os.path.exists(os.environ["GATE"]): time.sleep(0.01)'
"""A training: says its pid, then works until the gate is gone."""
DRIVER = f"import subprocess, sys; children = [subprocess.Popen([sys.executable, '-c', {WORK!r}]"
WAIT = "; [child.wait() for child in children]"
RANKS = f"{DRIVER}, start_new_session=True, env={{**__import__('os').environ, 'LOCAL_RANK': str(n)}}) for n in range(2)]{WAIT}"
SPAWNED = f"{DRIVER}) for n in range(2)]{WAIT}"
KERNELS = f"{DRIVER}, start_new_session=True) for n in range(2)]{WAIT}"
PROC = ProcFolder()


@contextmanager
def running(command: list[str], *, trainings: int) -> Iterator[list[ProcessId]]:
    """Starts a process tree, gives its trainings, and lets them end."""
    with tempfile.NamedTemporaryFile() as gate:
        environment = {name: value for name, value in os.environ.items() if name != "LOCAL_RANK"} | {"GATE": gate.name}
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment, start_new_session=True)
        assert process.stdout
        try:
            pids = [int(process.stdout.readline()) for _ in range(trainings)]
            yield [ProcessId(pid, PROC.start_ticks(pid) or 0) for pid in pids]
            gate.close()
            assert process.wait(timeout=30) == 0
        finally:
            process.kill()
            process.wait()
            process.stdout.close()


def places(processes: list[ProcessId]) -> list[Place]:
    """Where each of them runs."""
    return [place_of(proc=PROC, process=process, cgroup=None) for process in processes]


def script(*commands: str) -> list[str]:
    """A shell that runs these side by side."""
    return ["bash", "-c", f"{' & '.join(commands)} & wait"]


def python(code: str) -> str:
    """A shell's command that runs this code."""
    return f"{sys.executable} -c '{code}'"


@pytest.mark.parametrize(
    "driver", [RANKS, SPAWNED], ids=["ranks in sessions of their own, as torchrun has them", "one session, as mp.spawn"]
)
def test_the_children_of_one_launcher_are_one_program(driver: str) -> None:
    """Both ranks belong to the program that started them, whether it gives them sessions of their own or not."""
    with running([sys.executable, "-c", driver], trainings=2) as ranks:
        one, other = places(ranks)
        assert one.root == other.root
        assert one.root not in ranks


def test_ranks_say_who_gave_them_their_numbers() -> None:
    """The launcher of a rank is its parent, that of any other process it is itself."""
    with running([sys.executable, "-c", RANKS], trainings=2) as ranks:
        one, other = places(ranks)
        assert one.launcher == other.launcher == one.root
    with running([sys.executable, "-c", SPAWNED], trainings=2) as ranks:
        assert [place.launcher for place in places(ranks)] == ranks


def test_what_a_shell_runs_side_by_side_is_several_programs() -> None:
    """A script without job control keeps both in its session and its process group: only the tree tells them apart."""
    with running(script(python(WORK.replace("'", '"')), python(WORK.replace("'", '"'))), trainings=2) as trainings:
        assert len({os.getpgid(process.pid) for process in trainings}) == 1
        assert [place.root for place in places(trainings)] == trainings


def test_the_kernels_of_one_notebook_server_are_several_programs() -> None:
    """Sessions of their own and no ranks: each is what a person runs in it."""
    with running([sys.executable, "-c", KERNELS], trainings=2) as kernels:
        assert [place.root for place in places(kernels)] == kernels


def test_a_shell_script_is_a_shell_whatever_it_is_called(tmp_path: Path) -> None:
    """The kernel names a script's process after the script; its executable is still the shell."""
    path = tmp_path / "sweep"
    path.write_text(f"#!/bin/bash\n{python(WORK.replace(chr(39), chr(34)))}\ntrue\n")
    path.chmod(0o755)
    with running([str(path)], trainings=1) as trainings:
        assert [place.root for place in places(trainings)] == trainings


TORCHRUN = ["-m", "torch.distributed.run", "--nproc-per-node=2", "--nnodes=1", "--master-addr=127.0.0.1", "--master-port=0"]


@pytest.mark.torch
def test_the_ranks_of_a_real_torchrun_are_one_program(tmp_path: Path) -> None:
    """PyTorch's own launcher: two sessions, two process groups, one parent, and one program."""
    path = tmp_path / "train.py"
    path.write_text(WORK)
    with running([sys.executable, *TORCHRUN, str(path)], trainings=2) as ranks:
        assert len({os.getsid(rank.pid) for rank in ranks}) == len({os.getpgid(rank.pid) for rank in ranks}) == 2
        one, other = places(ranks)
        assert one.root == other.root == one.launcher == other.launcher


def test_without_the_right_to_look_a_rank_is_still_one(tmp_path: Path) -> None:
    """An agent that may not read other users' environments: what a shell did not start belongs to what did."""
    tree = ProcTree(tmp_path)
    for pid, parent, session in ((2, 1, 2), (3, 2, 2), (7, 3, 7), (8, 3, 8)):
        tree.add(pid, parent=parent, session=session)
        (tmp_path / str(pid) / "exe").unlink()
    (tmp_path / "2" / "stat").write_text((tmp_path / "2" / "stat").read_text().replace("a (strange) name", "bash"))
    roots = {place_of(proc=ProcFolder(root=tmp_path), process=ProcessId(pid, 100), cgroup=None).root for pid in (7, 8)}
    assert roots == {ProcessId(3, 100)}


def owners_of(attribution: Attribution, *processes: ProcessId) -> set[str]:
    """The names of the trainings that they are part of."""
    return {owner.step for owner in attribution.owners_on(GPU, processes).values()}


def test_a_sweep_in_a_shell_script_is_seen_as_several_trainings(tmp_path: Path) -> None:
    """The whole way over the real /proc: side by side under one prediction; the same with two predictions is two attempts of one each."""
    attribution = Attribution(cluster="alpha", proc=PROC, jobs=JobsFolder(folder=tmp_path))
    command = python(WORK.replace("'", '"'))
    with running(script(f"PEAKGATE_PREDICTION=p1 {command}", f"PEAKGATE_PREDICTION=p1 {command}"), trainings=2) as trainings:
        assert len(owners_of(attribution, *trainings)) == 2
        assert [attribution.are_several(owner.attempt) for owner in attribution.owners_on(GPU, trainings).values()] == [True, True]
    with running(script(f"PEAKGATE_PREDICTION=p2 {command}", f"PEAKGATE_PREDICTION=p3 {command}"), trainings=2) as trainings:
        assert owners_of(attribution, *trainings) == {""}
        assert [attribution.are_several(owner.attempt) for owner in attribution.owners_on(GPU, trainings).values()] == [False, False]


@pytest.mark.parametrize(("driver", "want"), [(RANKS, False), (SPAWNED, False), (KERNELS, True)], ids=["ranks", "spawned", "kernels"])
def test_ranks_are_one_training_and_kernels_are_several(tmp_path: Path, driver: str, want: bool) -> None:
    """The same tree, sessions and parents: what tells a rank from a notebook's kernel is the number that its launcher gave it."""
    attribution = Attribution(cluster="alpha", proc=PROC, jobs=JobsFolder(folder=tmp_path))
    with running(["env", "PEAKGATE_PREDICTION=p1", sys.executable, "-c", driver], trainings=2) as processes:
        owners = attribution.owners_on(GPU, processes)
        assert [attribution.are_several(owner.attempt) for owner in owners.values()] == [want, want]


def test_a_process_that_is_gone_stands_alone(tmp_path: Path) -> None:
    """Without a tree the process is its own program; a later one with its pid is not looked at in its place."""
    tree = ProcTree(tmp_path)
    proc = ProcFolder(root=tmp_path)
    assert place_of(proc=proc, process=ProcessId(7, 100), cgroup=None).root == ProcessId(7, 100)
    tree.add(7, start_ticks=900, parent=3)
    assert place_of(proc=proc, process=ProcessId(7, 100), cgroup=None).root == ProcessId(7, 100)


def test_orphans_of_one_process_group_stay_together(tmp_path: Path) -> None:
    """Whose parent has gone still has its group."""
    tree = ProcTree(tmp_path)
    for pid in (7, 8):
        tree.add(pid, parent=1, group=3, session=2)
    tree.add(9, parent=1, group=4, session=2)
    roots = [place_of(proc=ProcFolder(root=tmp_path), process=ProcessId(pid, 100), cgroup=None).root for pid in (7, 8, 9)]
    assert roots == [ProcessId(3, 0), ProcessId(3, 0), ProcessId(4, 0)]


def test_a_parent_that_started_later_is_none(tmp_path: Path) -> None:
    """It has only been given the number of the real one."""
    tree = ProcTree(tmp_path)
    tree.add(3, start_ticks=500, session=2)
    tree.add(7, start_ticks=100, parent=3, session=2)
    assert place_of(proc=ProcFolder(root=tmp_path), process=ProcessId(7, 100), cgroup=None).root == ProcessId(7, 100)


def test_a_loop_of_parents_ends(tmp_path: Path) -> None:
    """A tree that was read while it changed cannot hold the agent up."""
    tree = ProcTree(tmp_path)
    tree.add(3, parent=7, environment={"LOCAL_RANK": "0"})
    tree.add(7, parent=3, environment={"LOCAL_RANK": "1"})
    assert place_of(proc=ProcFolder(root=tmp_path), process=ProcessId(7, 100), cgroup=None).root.pid in {3, 7}


@pytest.mark.parametrize(
    ("cgroup", "want"),
    [
        (CgroupJob(kind="slurm", job="9", step="batch", task="0"), ("batch", "0")),
        (CgroupJob(kind="kubernetes", job="u", container="abc"), ("abc", "")),
        (None, ("", "")),
    ],
)
def test_the_step_is_the_schedulers(tmp_path: Path, cgroup: CgroupJob | None, want: tuple[str, str]) -> None:
    """Slurm's step and task, a pod's container, nothing elsewhere."""
    place = place_of(proc=ProcFolder(root=tmp_path), process=ProcessId(7, 100), cgroup=cgroup)
    assert (place.step, place.task) == want
