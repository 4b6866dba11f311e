"""Who a process belongs to: drop-in file, control group, environment, nobody."""

from __future__ import annotations

from pathlib import Path

import pytest
from structlog.testing import capture_logs
from tests.unit.agent.builders import GPU, ProcTree, write_job_file

from peakgate.agent.attribution import Attribution
from peakgate.agent.host_pids import HostPids
from peakgate.agent.jobs_folder import JobFile, JobsFolder
from peakgate.agent.owner import Owner
from peakgate.agent.proc import ProcessId, ProcFolder

SLUID = "sEKNKTV3WPV500"
SLURM_SLUID = f"0::/system.slice/slurmstepd.scope/{SLUID}/step_0/user/task_0"
SLURM_402 = "0::/system.slice/slurmstepd.scope/job_402/step_0/user/task_0"


class Node:
    """A /proc and a folder of drop-in files."""

    def __init__(self, folder: Path) -> None:
        self.proc = ProcTree(folder / "proc")
        self.jobs = folder / "jobs"
        self.attribution = Attribution(cluster="alpha", proc=ProcFolder(root=self.proc.root), jobs=JobsFolder(folder=self.jobs))

    def owner(self, pid: int = 7) -> Owner:
        """The owner of the process on the GPU."""
        return self.attribution.owner_of(gpu_uuid=GPU, process=ProcessId(pid, 100))


@pytest.fixture
def node(tmp_path: Path) -> Node:
    """An empty node."""
    return Node(tmp_path)


def test_the_control_group_gives_the_job_and_the_environment_the_prediction(node: Node) -> None:
    """The kernel says which job it is; the job's environment says which prediction was made for it."""
    environment = {"PEAKGATE_PREDICTION": "predictions/p1", "SLURM_JOB_ID": "999", "SLURM_RESTART_COUNT": "2"}
    node.proc.add(7, cgroup=SLURM_402, environment=environment, uid=1001)
    assert node.owner() == Owner(cluster="alpha", job="402", restart=2, prediction="predictions/p1", uid=1001)


def test_the_uid_of_a_workload_names_its_prediction(node: Node) -> None:
    """On a pod of Kubernetes no name is known; the job is the pod, and whose uid it is the service finds out."""
    uid, pod = "6f1a3a0e-9d0c-4e0b-8f6e-6b1d8c1f7a55", "0b7c7a1e-52a6-4c0e-9a4e-2c1f6d1f3b11"
    cgroup = f"0::/kubepods.slice/kubepods-pod{pod.replace('-', '_')}.slice/cri-containerd-{64 * 'a'}.scope"
    node.proc.add(7, cgroup=cgroup, environment={"PEAKGATE_PREDICTION": uid})
    assert node.owner() == Owner(cluster="alpha", job=pod, prediction=uid, uid=1000)


def test_what_export_leaves_a_batch_job_names_its_prediction(node: Node) -> None:
    """Slurm hands variables of its own on under --export=NONE; the plain name wins, for a gate wrote it last."""
    left = {"SLURM_PEAKGATE_PREDICTION": "predictions/p1"}
    node.proc.add(7, cgroup=SLURM_402, environment=left)
    node.proc.add(8, cgroup=SLURM_402, environment=left | {"PEAKGATE_PREDICTION": "predictions/p2"})
    assert (node.owner().prediction, node.owner(pid=8).prediction) == ("predictions/p1", "predictions/p2")


def test_the_drop_in_file_wins(node: Node) -> None:
    """What the scheduler's prolog wrote stands above the environment, which a user can set to anything."""
    node.proc.add(7, cgroup=SLURM_402, environment={"PEAKGATE_PREDICTION": "predictions/forged"})
    write_job_file(node.jobs, GPU, cluster="beta", job="402", restart=1, prediction="predictions/p9", user="ann")
    assert node.owner() == Owner(cluster="beta", job="402", restart=1, prediction="predictions/p9", uid=1000)


def test_a_drop_in_file_of_an_earlier_job_is_not_believed(node: Node) -> None:
    """A file that names another Slurm job than the control group was left behind: the peak must not move to that job."""
    node.proc.add(7, cgroup=SLURM_402)
    write_job_file(node.jobs, GPU, job="401", prediction="predictions/old")
    with capture_logs() as logs:
        assert node.owner() == Owner(cluster="alpha", job="402", uid=1000)
    assert [entry["file_job"] for entry in logs] == ["401"]


def test_the_owner_stays_when_the_epilog_takes_the_file_away(node: Node) -> None:
    """A process that outlives its drop-in file by a moment does not become another job's."""
    node.proc.add(7)
    path = write_job_file(node.jobs, GPU, job="402", prediction="predictions/p1")
    want = node.owner()
    path.unlink()
    assert node.owner() == want
    assert want.job == "402"


def test_a_late_drop_in_file_still_counts(node: Node) -> None:
    """A file written after the process started names its owner from then on."""
    node.proc.add(7)
    assert node.owner().job == ""
    write_job_file(node.jobs, GPU, job="402")
    assert node.owner().job == "402"


def test_a_sluid_is_the_jobs_key_and_its_number_is_kept(node: Node) -> None:
    """The SLUID is of one run, so a requeued job does not take its predecessor's peaks; people know the job by its number."""
    node.proc.add(7, cgroup=SLURM_SLUID, environment={"SLURM_JOB_ID": "402", "SLURM_JOB_SLUID": SLUID})
    assert node.owner() == Owner(cluster="alpha", job=SLUID, slurm_job="402", uid=1000)


@pytest.mark.parametrize("sluid", ["sEKNKTV3WPV501", "", "s-not-a-sluid"])
def test_a_number_beside_another_sluid_is_not_the_jobs(node: Node, sluid: str) -> None:
    """An environment that does not fit the control group is of another job or made up: no number is better than a wrong one."""
    node.proc.add(7, cgroup=SLURM_SLUID, environment={"SLURM_JOB_ID": "999", "SLURM_JOB_SLUID": sluid})
    assert node.owner() == Owner(cluster="alpha", job=SLUID, uid=1000)


def test_a_drop_in_file_tells_the_number_of_a_sluid(node: Node) -> None:
    """The prolog knows both; what it says of another SLUID is left over."""
    node.proc.add(7, cgroup=SLURM_SLUID)
    write_job_file(node.jobs, GPU, job="402", sluid=SLUID, prediction="predictions/p1")
    assert node.owner() == Owner(cluster="alpha", job=SLUID, slurm_job="402", prediction="predictions/p1", uid=1000)
    node.proc.add(8, cgroup=SLURM_SLUID)
    write_job_file(node.jobs, GPU, job="403", sluid="sEKNKTV3WPV501", prediction="predictions/p2")
    assert node.owner(8) == Owner(cluster="alpha", job=SLUID, uid=1000)


def test_a_drop_in_file_tells_the_sluid_of_a_number(node: Node) -> None:
    """Where control groups are named by number (CgroupJobIdPaths), the prolog's SLUID makes the key of one run."""
    node.proc.add(7, cgroup=SLURM_402)
    write_job_file(node.jobs, GPU, job="402", sluid=SLUID)
    assert node.owner() == Owner(cluster="alpha", job=SLUID, slurm_job="402", uid=1000)


def test_without_control_groups_the_environment_names_the_job(node: Node) -> None:
    """A cluster without the cgroup plugins: a hint is all there is; a SLUID in it is the key as everywhere."""
    node.proc.add(7, environment={"SLURM_JOB_ID": "402", "SLURM_RESTART_COUNT": "1"})
    node.proc.add(8, environment={"SLURM_JOB_ID": "402", "SLURM_JOB_SLUID": SLUID})
    assert node.owner(7) == Owner(cluster="alpha", job="402", restart=1, uid=1000)
    assert node.owner(8) == Owner(cluster="alpha", job=SLUID, slurm_job="402", uid=1000)


def test_a_restart_that_the_prolog_cannot_know_is_the_environments(node: Node) -> None:
    """Slurm tells the job how often it was restarted, and not the prolog."""
    node.proc.add(7, cgroup=SLURM_402, environment={"SLURM_RESTART_COUNT": "3"})
    write_job_file(node.jobs, GPU, job="402", prediction="predictions/p1")
    assert node.owner().restart == 3


def test_another_prediction_in_the_process_makes_the_figures_nobodys(node: Node) -> None:
    """The scheduler's prediction and the process's differ: whichever was trained, neither learns from it."""
    node.proc.add(7, cgroup=SLURM_402, environment={"PEAKGATE_PREDICTION": "predictions/p2"})
    write_job_file(node.jobs, GPU, job="402", prediction="predictions/p1")
    owner = node.owner()
    assert owner.prediction == "predictions/p1"
    assert node.attribution.are_several(owner.attempt)


def test_a_shared_gpu_has_the_owners_of_its_processes(node: Node) -> None:
    """Two jobs on one GPU: each process is of the job that its control group names, and no file moves it."""
    write_job_file(node.jobs, GPU, job="402", prediction="predictions/p1")
    node.proc.add(7, cgroup=SLURM_402)
    node.proc.add(8, cgroup=SLURM_402.replace("402", "403"))
    owners = node.attribution.owners_on(GPU, [ProcessId(7, 100), ProcessId(8, 100)])
    assert [(owner.job, owner.prediction) for owner in owners.values()] == [("402", "predictions/p1"), ("403", "")]


def test_without_the_machines_pids_nobody_is_an_owner(node: Node) -> None:
    """A pid that /proc lacks shows that the others may be anybody's: nothing is attributed, and the reason can be read."""
    proc = ProcFolder(root=node.proc.root)
    attribution = Attribution(cluster="alpha", proc=proc, jobs=JobsFolder(folder=node.jobs), host_pids=HostPids(proc=proc))
    node.proc.add(7, cgroup=SLURM_402)
    listed = [ProcessId(7, 100), ProcessId(8, 0)]
    assert attribution.owners_on(GPU, listed)[listed[0]].job == "402"
    assert attribution.refused == ""
    assert set(attribution.owners_on(GPU, listed).values()) == {Owner(cluster="alpha")}
    assert "pids" in attribution.refused


def test_a_process_without_a_scheduler_is_known_by_its_prediction(node: Node) -> None:
    """On a laptop the prediction in the environment is the job."""
    node.proc.add(7, environment={"PEAKGATE_PREDICTION": "predictions/p1"})
    assert node.owner() == Owner(cluster="alpha", job="predictions/p1", prediction="predictions/p1", uid=1000)


@pytest.mark.parametrize("value", ["x" * 201, "bad\nline", "\x1b[31m"])
def test_an_absurd_id_in_the_environment_is_ignored(node: Node, value: str) -> None:
    """A user cannot put control characters or a flood into the reports."""
    node.proc.add(7, environment={"PEAKGATE_PREDICTION": value})
    assert node.owner() == Owner(cluster="alpha", uid=1000)


def test_a_process_that_proc_does_not_show_is_unattributed(node: Node) -> None:
    """It has an owner all the same: nobody, so that its memory is still reported."""
    assert node.owner(pid=4999001) == Owner(cluster="alpha")


def test_a_pid_that_is_used_again_is_read_again(node: Node) -> None:
    """What was known of the earlier process says nothing about the later one."""
    node.proc.add(7, cgroup=SLURM_402)
    node.owner()
    node.proc.add(7, start_ticks=900, cgroup="0::/system.slice/slurmstepd.scope/job_403/step_0")
    assert node.attribution.owner_of(gpu_uuid=GPU, process=ProcessId(7, 900)).job == "403"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no json",
        "[]",
        '{"cluster": "a"}',
        '{"job": ""}',
        '{"job": "1", "restart": -1}',
        '{"job": "1", "restart": true}',
        '{"job": ["1"]}',
        "[" * 60_000,
        f'{{"job": "1", "restart": {1 << 70}}}',
        f'{{"job": "{"x" * 201}"}}',
        '{"job": "1\\u0000"}',
        '{"job": "1", "prediction": "\\ud800"}',
    ],
    ids=lambda text: text[:30],
)
def test_a_drop_in_file_that_is_not_as_agreed_is_absent_and_said_once(tmp_path: Path, text: str) -> None:
    """A broken file is not guessed at; the log names it one time and not every second."""
    (tmp_path / f"{GPU}.json").write_text(text)
    folder = JobsFolder(folder=tmp_path)
    with capture_logs() as logs:
        assert [folder.job_on(GPU), folder.job_on(GPU)] == [None, None]
    assert len(logs) == 1


def test_a_drop_in_file_may_write_numbers_for_ids(tmp_path: Path) -> None:
    """A shell script that forgets the quotes is understood."""
    write_job_file(tmp_path, GPU, job=402, user=1000)
    assert JobsFolder(folder=tmp_path).job_on(GPU) == JobFile(job="402", user="1000")


def test_a_drop_in_file_that_changes_is_read_again(tmp_path: Path) -> None:
    """The next job's file counts from the moment it is there, and its absence too."""
    folder = JobsFolder(folder=tmp_path)
    for job in ("402", "40333"):
        write_job_file(tmp_path, GPU, job=job)
        assert folder.job_on(GPU) == JobFile(job=job)
    (tmp_path / f"{GPU}.json").unlink()
    assert folder.job_on(GPU) is None
