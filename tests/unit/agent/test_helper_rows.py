"""What a helper has said, as rows beside the sampled ones."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.agent.builders import GIB, GPU, OTHER_GPU, START, a_gpu, a_list
from tests.unit.agent.test_tracker import Node, events

from peakgate.agent.changes import Changes
from peakgate.agent.helper_reports import HelperSample
from peakgate.agent.peaks import Allocator, Flag, PeakRow
from peakgate.agent.proc import ProcessId
from peakgate.agent.samples import GpuGone
from peakgate.v1.allocator_report import ASYNC, AllocatorReport, PhaseReport, bare_uuid

REPORT = AllocatorReport(
    gpu_uuid=GPU,
    allocated_bytes=30 * GIB,
    reserved_bytes=32 * GIB,
    steps_done=3,
    longest_sequence=4096,
    phases=(PhaseReport(phase="backward", allocated_bytes=30 * GIB, reserved_bytes=32 * GIB),),
)


@pytest.fixture
def node(tmp_path: Path) -> Node:
    """Process 7 of Slurm job 402 is on the GPU."""
    node = Node(tmp_path)
    node.add(7)
    node.tracker.take(a_list(START, {7: 33 * GIB}))
    return node


def tell(node: Node, report: AllocatorReport = REPORT, *, time: float = START + 1, gpu: str = GPU, pid: int = 7) -> Changes:
    """The helper of a process says so."""
    found = node.tracker.find(pid, 100, report.gpu_uuid)
    assert found == (gpu, ProcessId(pid, 100))
    return node.tracker.hear(HelperSample(gpu=a_gpu(gpu), time=time, process=found[1], report=report))


def end(node: Node, pid: int = 7, *, time: float = START + 9) -> Changes:
    """The process is gone."""
    node.proc.remove(pid)
    return node.tracker.take(a_list(time, {}))


def torch_rows(changes: Changes) -> list[PeakRow]:
    """The helper's rows among them."""
    return [row for row in changes.rows if row.key.source == "torch"]


def test_a_report_becomes_a_row_of_its_own_source(node: Node) -> None:
    """The same key as the sampled row of the process but for the source; the peak is what was reserved, the rest stands beside it."""
    (row,) = tell(node).rows
    sampled = node.rows()[GPU, "402", 7, 100, "sampled"]
    assert row.key == replace(sampled.key, source="torch")
    assert (row.peak_bytes, row.peak_time, row.uid, row.flags) == (32 * GIB, START + 1, 1000, Flag(0))
    backward = PhaseReport(phase="backward", allocated_bytes=30 * GIB, reserved_bytes=32 * GIB)
    want = Allocator(allocated_bytes=30 * GIB, reserved_bytes=32 * GIB, steps_done=3, longest_sequence=4096, phases=(backward,))
    assert row.allocator == want


def test_the_row_ends_with_its_process(node: Node) -> None:
    """With the last figures, once."""
    tell(node)
    tell(node, replace(REPORT, steps_done=90), time=START + 5)
    changes = end(node)
    assert [(row.ended, row.allocator.steps_done, row.last_time, row.samples) for row in torch_rows(changes)] == [(True, 90, START + 5, 2)]
    assert events(changes) == [("402", "finished")]
    node.add(7, start_ticks=200)
    assert torch_rows(node.tracker.take(a_list(START + 10, {7: GIB}))) == []


def test_a_report_that_comes_late_takes_nothing_back(node: Node) -> None:
    """Figures are maxima, phase by phase."""
    tell(node, replace(REPORT, steps_done=9, phases=(PhaseReport(phase="loss", allocated_bytes=GIB, reserved_bytes=GIB),)), time=START + 5)
    (row,) = tell(node, replace(REPORT, reserved_bytes=GIB), time=START + 1).rows
    assert (row.peak_bytes, row.allocator.steps_done, row.last_time) == (32 * GIB, 9, START + 5)
    assert [each.phase for each in row.allocator.phases] == ["loss", "backward"]


def test_an_out_of_memory_error_that_ends_the_process_ends_the_job_so(node: Node) -> None:
    """The row is flagged, and the job's event says oom."""
    tell(node)
    (row,) = tell(node, replace(REPORT, ooms=1)).rows
    changes = end(node)
    assert (row.flags, events(changes)) == (Flag.OOM, [("402", "oom")])
    assert [each.flags for each in torch_rows(changes)] == [Flag.OOM]


def test_an_error_that_the_training_lived_through_is_no_end(node: Node) -> None:
    """A batch-size finder catches it and goes on: the row keeps its flag, the job has finished."""
    tell(node, replace(REPORT, ooms=1, steps_done=0))
    tell(node, replace(REPORT, ooms=1, steps_done=50))
    changes = end(node)
    assert (events(changes), [row.flags for row in torch_rows(changes)]) == ([("402", "finished")], [Flag.OOM])


def test_an_error_before_anything_was_held_ends_the_job_without_a_row(node: Node) -> None:
    """A peak of nothing is none."""
    assert tell(node, AllocatorReport(gpu_uuid=GPU, ooms=1)).rows == []
    changes = end(node)
    assert (torch_rows(changes), events(changes)) == ([], [("402", "oom")])


def test_one_rank_out_of_memory_is_the_jobs_end(node: Node) -> None:
    """The other ranks are ended by their launcher and have nothing to say."""
    node.add(8)
    node.tracker.take(a_list(START + 1, {8: 30 * GIB}, gpu=a_gpu(OTHER_GPU)))
    tell(node, replace(REPORT, ooms=1))
    assert events(end(node)) == []
    node.proc.remove(8)
    assert events(node.tracker.take(a_list(START + 10, {}, gpu=a_gpu(OTHER_GPU)))) == [("402", "oom")]


def test_the_async_allocator_is_flagged(node: Node) -> None:
    """Its own figures are not torch's."""
    assert tell(node, replace(REPORT, backend=ASYNC)).rows[0].flags == Flag.ASYNC_ALLOCATOR


def test_a_lost_gpu_cuts_the_row_off(node: Node) -> None:
    """As it does the sampled one."""
    tell(node)
    changes = node.tracker.take(GpuGone(gpu=a_gpu(), time=START + 2))
    assert [(row.ended, row.flags) for row in torch_rows(changes)] == [(True, Flag.TRUNCATED)]


def test_a_prediction_of_the_helper_fills_what_is_open(node: Node) -> None:
    """A program that predicted before its step 0 names the prediction itself; the sampled rows carry it from then on."""
    node.add(8, prediction="")
    node.tracker.take(a_list(START, {8: 20 * GIB}, gpu=a_gpu(OTHER_GPU)))
    (row,) = tell(node, replace(REPORT, gpu_uuid=OTHER_GPU, prediction="predictions/own"), gpu=OTHER_GPU, pid=8).rows
    assert (row.key.job, row.key.prediction, row.flags) == ("402", "predictions/own", Flag(0))
    node.tracker.take(a_list(START + 2, {8: 21 * GIB}, gpu=a_gpu(OTHER_GPU)))
    sampled = [row for row in node.tracker.everything() if row.key.gpu_uuid == OTHER_GPU and not row.ended]
    assert {(row.key.prediction, row.key.pid, row.peak_bytes) for row in sampled} == {
        ("predictions/own", 8, 21 * GIB),
        ("predictions/own", 0, 21 * GIB),
    }


def test_ranks_that_name_one_prediction_are_one_training(node: Node) -> None:
    """Each rank's hint comes at its own moment; none of them makes the training several."""
    for pid, gpu in ((8, GPU), (9, OTHER_GPU)):
        node.add(pid, job="403", prediction="")
        node.tracker.take(a_list(START, {pid: 20 * GIB, **({7: GIB} if gpu == GPU else {})}, gpu=a_gpu(gpu)))
    rows = [
        tell(node, replace(REPORT, gpu_uuid=gpu, prediction="predictions/own"), gpu=gpu, pid=pid).rows[0]
        for pid, gpu in ((8, GPU), (9, OTHER_GPU))
    ]
    assert {(row.key.job, row.key.prediction, row.key.step, row.flags) for row in rows} == {("403", "predictions/own", "", Flag(0))}


def test_a_process_outside_every_scheduler_is_the_job_of_its_prediction(node: Node) -> None:
    """As with PEAKGATE_PREDICTION in the environment."""
    node.proc.add(9)
    node.tracker.take(a_list(START, {9: GIB}, gpu=a_gpu(OTHER_GPU)))
    (row,) = tell(node, replace(REPORT, gpu_uuid=OTHER_GPU, prediction="predictions/own"), gpu=OTHER_GPU, pid=9).rows
    assert (row.key.job, row.key.prediction, row.flags) == ("predictions/own", "predictions/own", Flag(0))


def test_another_prediction_than_the_schedulers_is_several_trainings(node: Node) -> None:
    """The second training of a notebook names its own: which one the figures are of is not known, and every row says so."""
    tell(node, replace(REPORT, prediction="predictions/p1"))
    (row,) = tell(node, replace(REPORT, prediction="predictions/second")).rows
    assert (row.key.prediction, row.flags) == ("predictions/p1", Flag.SEVERAL)
    node.tracker.take(a_list(START + 2, {7: 40 * GIB}))
    assert {row.flags for row in node.tracker.everything()} == {Flag.SEVERAL}


def test_a_later_training_of_a_process_is_several_trainings(node: Node) -> None:
    """Whether it names a prediction or not: the process's memory is that of both, also as NVML sees it."""
    tell(node)
    (row,) = tell(node, replace(REPORT, training=1)).rows
    assert (row.key.prediction, row.flags) == ("predictions/p1", Flag.SEVERAL)
    node.tracker.take(a_list(START + 2, {7: 40 * GIB}))
    assert {row.flags for row in node.tracker.everything()} == {Flag.SEVERAL}


@pytest.mark.parametrize(
    ("named", "on", "want"),
    [
        (GPU, (GPU, OTHER_GPU), GPU),
        (bare_uuid(OTHER_GPU), (GPU, OTHER_GPU), OTHER_GPU),
        ("", (GPU,), GPU),
        ("", (GPU, OTHER_GPU), None),
        (OTHER_GPU, (GPU,), None),
        (GPU, (f"MIG-{bare_uuid(OTHER_GPU)}",), f"MIG-{bare_uuid(OTHER_GPU)}"),
        (bare_uuid(OTHER_GPU), (f"MIG-{bare_uuid(OTHER_GPU)}",), f"MIG-{bare_uuid(OTHER_GPU)}"),
    ],
)
def test_a_report_is_of_the_gpu_that_it_names_and_its_process_is_on(
    tmp_path: Path, named: str, on: tuple[str, ...], want: str | None
) -> None:
    """By UUID, whatever stands in front of it; unnamed, or the GPU around a MIG instance, it is the only one of the process."""
    node = Node(tmp_path)
    node.add(7)
    for uuid in on:
        node.tracker.take(a_list(START, {7: GIB}, gpu=a_gpu(uuid)))
    found = node.tracker.find(7, 100, named)
    assert (found[0] if found else None) == want
    assert node.tracker.find(7, 999, named) is None


def test_nothing_is_heard_while_nvmls_pids_are_not_the_kernels(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """In another pid namespace the pid that NVML lists is another process's than the sender's."""
    monkeypatch.setattr(type(node.tracker), "refused", "NVML lists processes that /proc does not show")
    assert node.tracker.find(7, 100, GPU) is None
