"""From samples to peaks and job ends."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.agent.builders import GIB, GPU, OTHER_GPU, START, ProcTree, a_gpu, a_list, write_job_file

from peakgate.agent.attribution import Attribution
from peakgate.agent.changes import Changes
from peakgate.agent.jobs_folder import JobsFolder
from peakgate.agent.peaks import Flag, JobEvent, PeakRow
from peakgate.agent.proc import ProcFolder
from peakgate.agent.samples import DeviceSample, GpuGone, ReadFailed
from peakgate.agent.tracker import Tracker

SLURM = "0::/system.slice/slurmstepd.scope/job_{job}/step_0/user/task_0"


class Node:
    """A tracker over a made-up /proc."""

    def __init__(self, folder: Path) -> None:
        self.proc = ProcTree(folder / "proc")
        self.jobs = folder / "jobs"
        proc = ProcFolder(root=self.proc.root)
        attribution = Attribution(cluster="alpha", proc=proc, jobs=JobsFolder(folder=self.jobs))
        self.tracker = Tracker(attribution=attribution, proc=proc, boot_id="boot-1")

    def add(
        self, pid: int, *, job: str = "402", start_ticks: int = 100, prediction: str = "predictions/p1", parent: int = 0, step: int = 0
    ) -> None:
        """A process of a Slurm job."""
        cgroup = SLURM.format(job=job).replace("step_0", f"step_{step}")
        self.proc.add(pid, start_ticks=start_ticks, cgroup=cgroup, environment={"PEAKGATE_PREDICTION": prediction}, parent=parent)

    def rows(self) -> dict[tuple[str, str, int, int, str], PeakRow]:
        """The open rows by (gpu, job, pid, start, source)."""
        return {
            (row.key.gpu_uuid, row.key.job, row.key.pid, row.key.pid_start_ticks, row.key.source): row for row in self.tracker.everything()
        }


@pytest.fixture
def node(tmp_path: Path) -> Node:
    """An empty node."""
    return Node(tmp_path)


def events(changes: Changes) -> list[tuple[str, str]]:
    """(job, event) of what ended."""
    return [(event.job, event.event) for event in changes.events]


def test_a_jobs_peak_is_the_highest_sum_and_not_the_sum_of_the_heights(node: Node) -> None:
    """Two processes that are high at different moments never held both heights at once."""
    node.add(7)
    node.add(8)
    node.tracker.take(a_list(START, {7: 30 * GIB, 8: 5 * GIB}))
    node.tracker.take(a_list(START + 1, {7: 5 * GIB, 8: 31 * GIB}))
    rows = node.rows()
    assert rows[GPU, "402", 0, 0, "sampled"].peak_bytes == 36 * GIB
    assert rows[GPU, "402", 0, 0, "sampled"].peak_time == START + 1
    assert [rows[GPU, "402", pid, 100, "sampled"].peak_bytes for pid in (7, 8)] == [30 * GIB, 31 * GIB]


def test_two_jobs_on_one_gpu_are_not_mixed(node: Node) -> None:
    """Each job has its own sum."""
    node.add(7, job="402")
    node.add(8, job="403")
    node.tracker.take(a_list(START, {7: 30 * GIB, 8: 5 * GIB}))
    rows = node.rows()
    assert (rows[GPU, "402", 0, 0, "sampled"].peak_bytes, rows[GPU, "403", 0, 0, "sampled"].peak_bytes) == (30 * GIB, 5 * GIB)


def test_trainings_of_one_allocation_are_told_apart_by_prediction(node: Node) -> None:
    """A sweep inside one job: each process group with its own prediction has its own peak and its own end."""
    node.add(7, prediction="predictions/a")
    node.add(8, prediction="predictions/b")
    node.tracker.take(a_list(START, {7: 30 * GIB, 8: 5 * GIB}))
    whole_job = [row for row in node.tracker.everything() if row.key.pid == 0]
    assert {row.key.prediction: row.peak_bytes for row in whole_job} == {"predictions/a": 30 * GIB, "predictions/b": 5 * GIB}
    node.proc.remove(8)
    ended = node.tracker.take(a_list(START + 1, {7: 30 * GIB})).events
    assert [event.prediction for event in ended] == ["predictions/b"]


def test_trainings_under_one_prediction_are_told_apart_and_flagged(node: Node) -> None:
    """A sweep without predictions of its own, side by side in one shell script: each has its peak, none of them is the predicted job's."""
    node.proc.add(3, executable="/bin/bash")
    node.add(7, parent=3)
    node.tracker.take(a_list(START, {7: 30 * GIB}))
    assert {row.flags for row in node.tracker.everything()} == {Flag(0)}
    node.add(8, parent=3, start_ticks=200)
    node.tracker.take(a_list(START + 1, {7: 31 * GIB, 8: 5 * GIB}))
    whole_job = [row for row in node.tracker.everything() if row.key.pid == 0]
    assert {row.key.step: row.peak_bytes for row in whole_job} == {"": 31 * GIB, "0:8": 5 * GIB}
    assert {row.flags for row in node.tracker.everything()} == {Flag.SEVERAL}


def test_trainings_one_after_the_other_are_flagged_too(node: Node) -> None:
    """A loop in one script: the second training's rows say that the attempt was not one, and those sent of the first say so again."""
    node.proc.add(3, executable="/bin/bash")
    node.add(7, parent=3)
    node.tracker.take(a_list(START, {7: 30 * GIB}))
    node.proc.remove(7)
    ended = node.tracker.take(a_list(START + 1, {}))
    assert events(ended) == [("402", "finished")]
    node.add(8, parent=3, start_ticks=200)
    rows = node.tracker.take(a_list(START + 2, {8: 5 * GIB}, gpu=a_gpu(OTHER_GPU))).rows
    assert {(row.key.gpu_uuid, row.key.step, row.peak_bytes // GIB, row.flags) for row in rows if row.key.pid == 0} == {
        (OTHER_GPU, "0:8", 5, Flag.SEVERAL),
        (GPU, "", 30, Flag.SEVERAL | flags_of(ended)),
    }
    assert {row.key.step for row in node.tracker.take(a_list(START + 20, {8: 5 * GIB}, gpu=a_gpu(OTHER_GPU))).rows} == {"0:8"}


def flags_of(changes: Changes) -> Flag:
    """The flags of the whole job's row."""
    return next(row.flags for row in changes.rows if row.key.pid == 0)


def test_steps_that_share_a_prediction_end_one_by_one(node: Node) -> None:
    """Each step's rows end with it; the job ends with the last of them."""
    node.add(7, step=0)
    node.add(8, step=1)
    node.tracker.take(a_list(START, {7: GIB, 8: GIB}))
    node.proc.remove(7)
    first = node.tracker.take(a_list(START + 1, {8: GIB}))
    assert {(row.key.pid, row.key.step) for row in first.rows if row.ended} == {(7, ""), (0, "")}
    assert first.events == []
    node.proc.remove(8)
    assert events(node.tracker.take(a_list(START + 2, {}))) == [("402", "finished")]


def test_the_ranks_of_one_launcher_are_summed(node: Node) -> None:
    """Two ranks on one GPU below one torchrun are one training."""
    node.proc.add(3)
    node.add(7, parent=3)
    node.add(8, parent=3)
    node.tracker.take(a_list(START, {7: 30 * GIB, 8: 5 * GIB}))
    assert node.rows()[GPU, "402", 0, 0, "sampled"].peak_bytes == 35 * GIB
    assert {row.flags for row in node.tracker.everything()} == {Flag(0)}


def test_the_end_of_the_last_process_ends_the_job(node: Node) -> None:
    """One row ends with each process; the event comes with the last one on the last GPU, and everything is urgent."""
    node.add(7)
    node.add(8)
    other = a_gpu(OTHER_GPU)
    node.tracker.take(a_list(START, {7: GIB}))
    node.tracker.take(a_list(START, {8: GIB}, gpu=other))
    node.proc.remove(7)
    first = node.tracker.take(a_list(START + 1, {}))
    assert {(row.key.pid, row.ended) for row in first.rows} == {(7, True), (0, True)}
    assert (events(first), first.are_urgent) == ([], True)
    node.proc.remove(8)
    last = node.tracker.take(a_list(START + 2, {}, gpu=other))
    want = JobEvent(cluster="alpha", job="402", restart=0, prediction="predictions/p1", event="finished", time=START + 2)
    assert last.events == [want]
    assert node.tracker.everything() == []


def test_the_first_rows_of_a_predicted_job_are_urgent(node: Node) -> None:
    """The service does not take the end on one node for the end of a job that it knows to have begun on another. Growth has time."""
    node.add(7)
    node.add(8, job="403", prediction="")
    looks = ({8: GIB}, {7: GIB, 8: GIB}, {7: 2 * GIB, 8: 3 * GIB})
    assert [node.tracker.take(a_list(START + second, used)).are_urgent for second, used in enumerate(looks)] == [False, True, False]


def test_a_failed_read_ends_nothing(node: Node) -> None:
    """A gap is counted; the process and its peak live on."""
    node.add(7)
    node.tracker.take(a_list(START, {7: GIB}))
    node.proc.remove(7)
    assert node.tracker.take(ReadFailed(gpu=a_gpu(), time=START + 1)) == Changes()
    row = node.rows()[GPU, "402", 7, 100, "sampled"]
    assert (row.gaps, row.ended) == (1, False)


def test_a_live_process_that_is_missing_once_has_not_left(node: Node) -> None:
    """/proc still shows it, so one list without it is a hiccup, two are not."""
    node.add(7)
    node.tracker.take(a_list(START, {7: GIB}))
    assert node.tracker.take(a_list(START + 1, {})).rows == []
    node.tracker.take(a_list(START + 2, {7: 2 * GIB}))
    assert node.tracker.take(a_list(START + 3, {})).events == []
    assert events(node.tracker.take(a_list(START + 4, {}))) == [("402", "finished")]


def test_a_pid_that_is_used_again_is_another_process(node: Node) -> None:
    """The later process starts from its own memory; the earlier one has ended."""
    node.add(7, job="402")
    node.tracker.take(a_list(START, {7: 50 * GIB}))
    node.add(7, job="403", start_ticks=900)
    changes = node.tracker.take(a_list(START + 1, {7: 2 * GIB}))
    assert events(changes) == [("402", "finished")]
    assert node.rows()[GPU, "403", 7, 900, "sampled"].peak_bytes == 2 * GIB


def test_a_process_that_is_dying_keeps_its_identity(node: Node) -> None:
    """NVML may list a process for a moment after /proc has lost it: that is not a new process."""
    node.add(7)
    node.tracker.take(a_list(START, {7: GIB}))
    node.proc.remove(7)
    node.tracker.take(a_list(START + 1, {7: 3 * GIB}))
    assert node.rows()[GPU, "402", 7, 100, "sampled"].peak_bytes == 3 * GIB


def test_a_process_of_nobody_is_reported(node: Node) -> None:
    """Unattributed memory has its row and its gauge, is flagged, and makes no job of strangers."""
    node.tracker.take(a_list(START, {4999002: 3 * GIB, 4999003: GIB}))
    rows = node.rows()
    assert set(rows) == {(GPU, "", 4999002, 0, "sampled"), (GPU, "", 4999003, 0, "sampled")}
    assert {row.flags for row in rows.values()} == {Flag.UNATTRIBUTED}
    assert node.tracker.unattributed_bytes == {GPU: 4 * GIB}


def test_without_its_own_figure_a_job_alone_has_the_gpus(node: Node) -> None:
    """N/A of a process is never a number; the whole GPU's memory stands in, and says so in its source."""
    node.add(7)
    node.tracker.take(DeviceSample(gpu=a_gpu(), time=START, used_bytes=9 * GIB))
    node.tracker.take(a_list(START, {7: None}))
    node.tracker.take(DeviceSample(gpu=a_gpu(), time=START + 0.5, used_bytes=11 * GIB))
    node.tracker.take(DeviceSample(gpu=a_gpu(), time=START + 1, used_bytes=10 * GIB))
    node.tracker.take(a_list(START + 1, {7: None}))
    rows = node.rows()
    assert set(rows) == {(GPU, "402", 0, 0, "device"), (GPU, "402", 7, 100, "device")}
    assert {row.peak_bytes for row in rows.values()} == {11 * GIB}


def test_without_its_own_figure_and_not_alone_nothing_is_claimed(node: Node) -> None:
    """The memory of a shared GPU is not that of one of its jobs: no row for the unknown, the other keeps its own."""
    node.add(7, job="402")
    node.add(8, job="403")
    node.tracker.take(DeviceSample(gpu=a_gpu(), time=START, used_bytes=9 * GIB))
    node.tracker.take(a_list(START, {7: None, 8: GIB}))
    assert set(node.rows()) == {(GPU, "403", 0, 0, "sampled"), (GPU, "403", 8, 100, "sampled")}


def test_memory_of_an_earlier_process_is_not_the_next_ones(node: Node) -> None:
    """When the processes changed between two lists, only the latest reading is surely of those that are there now."""
    node.add(7)
    node.tracker.take(DeviceSample(gpu=a_gpu(), time=START, used_bytes=70 * GIB))
    node.tracker.take(DeviceSample(gpu=a_gpu(), time=START + 0.5, used_bytes=2 * GIB))
    node.tracker.take(a_list(START + 1, {7: None}))
    assert node.rows()[GPU, "402", 7, 100, "device"].peak_bytes == 2 * GIB


def test_a_lost_gpu_truncates_its_peaks_and_fails_its_job(node: Node) -> None:
    """What was seen until then is kept and flagged; the job did not finish."""
    node.add(7)
    node.tracker.take(a_list(START, {7: GIB}))
    changes = node.tracker.take(GpuGone(gpu=a_gpu(), time=START + 1))
    assert {(row.flags, row.ended) for row in changes.rows} == {(Flag.TRUNCATED, True)}
    assert events(changes) == [("402", "failed")]


def test_a_late_drop_in_file_takes_the_process_over(node: Node) -> None:
    """The rows under the earlier attribution end, and the job's own begin."""
    node.proc.add(7)
    node.tracker.take(a_list(START, {7: GIB}))
    write_job_file(node.jobs, GPU, job="402", prediction="predictions/p1")
    changes = node.tracker.take(a_list(START + 1, {7: 2 * GIB}))
    assert {(row.key.job, row.key.pid, row.ended) for row in changes.rows} == {("", 7, True), ("402", 7, False), ("402", 0, False)}


def test_an_unchanged_peak_is_written_again_only_after_a_while(node: Node) -> None:
    """A plateau costs a write every ten seconds, not one a second."""
    node.add(7)
    writes = [len(node.tracker.take(a_list(START + second, {7: GIB})).rows) for second in range(21)]
    assert [second for second, rows in enumerate(writes) if rows] == [0, 10, 20]


def test_a_job_without_a_prediction_has_no_event(node: Node) -> None:
    """Its peaks are reported; there is nothing for the service to compare them with."""
    node.add(7, prediction="")
    node.tracker.take(a_list(START, {7: GIB}))
    node.proc.remove(7)
    changes = node.tracker.take(a_list(START + 1, {}))
    assert (changes.events, len(changes.rows)) == ([], 2)


def test_a_process_that_holds_nothing_yet_has_no_row(node: Node) -> None:
    """A peak of 0 bytes says nothing and would be refused; the row comes with the first memory."""
    node.add(7)
    assert node.tracker.take(a_list(START, {7: 0})).rows == []
    assert node.tracker.everything() == []
    assert {row.key.pid for row in node.tracker.take(a_list(START + 1, {7: GIB})).rows} == {0, 7}
