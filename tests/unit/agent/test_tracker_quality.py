"""Flags and gaps on the tracker's rows."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.agent.builders import GIB, GPU, START, a_gpu, a_list
from tests.unit.agent.test_tracker import Node

from peakgate.agent.peaks import NO_FLAGS, Flag
from peakgate.agent.preallocation import says_it_preallocates
from peakgate.agent.samples import DeviceSample, Gpu, GpuGone, GpuProcess, Kind, ProcessSample, ReadFailed

CARD = a_gpu(total_bytes=80 * GIB)


@pytest.fixture
def node(tmp_path: Path) -> Node:
    """An empty node."""
    return Node(tmp_path)


def device(time: float, gib: float, gpu: Gpu = CARD) -> DeviceSample:
    """A reading of the whole GPU."""
    return DeviceSample(gpu=gpu, time=time, used_bytes=int(gib * GIB))


def flags_of(node: Node) -> dict[tuple[int, str], Flag]:
    """Flags of the open rows by (pid, source)."""
    return {(row.key.pid, row.key.source): row.flags for row in node.tracker.everything()}


def test_gaps_are_counted_and_the_longest_is_kept(node: Node) -> None:
    """A failed reading is a gap; the longest time without a sample is known however it came about."""
    node.add(7)
    for second in (0, 1, 2):
        node.tracker.take(a_list(START + second, {7: GIB}))
    node.tracker.take(ReadFailed(gpu=CARD, time=START + 3))
    node.tracker.take(a_list(START + 40, {7: GIB}))
    row = node.rows()[GPU, "402", 7, 100, "sampled"]
    assert (row.samples, row.gaps, row.longest_gap_seconds) == (4, 1, 38)


def test_a_clock_that_is_set_makes_no_gap(node: Node) -> None:
    """Wall time jumps an hour back and forth; durations are taken from a clock that nobody sets."""
    node.add(7)
    for second, wall in ((0.0, 0.0), (1.0, 3601.0), (2.0, -3598.0)):
        node.tracker.take(ProcessSample(gpu=CARD, time=START + wall, clock=second, processes=(GpuProcess(pid=7, used_bytes=GIB),)))
    assert node.rows()[GPU, "402", 7, 100, "sampled"].longest_gap_seconds == 1.0


def test_a_client_of_mps_is_told(node: Node) -> None:
    """Its row and its job's; a neighbour's are not."""
    node.add(7)
    node.add(8, job="403")
    processes = (GpuProcess(pid=7, used_bytes=GIB, kinds=Kind.COMPUTE | Kind.MPS), GpuProcess(pid=8, used_bytes=GIB))
    node.tracker.take(ProcessSample(gpu=CARD, time=START, processes=processes))
    assert {(row.key.job, row.flags) for row in node.tracker.everything()} == {("402", Flag.MPS), ("403", NO_FLAGS)}


def test_memory_that_no_process_shows_is_told(node: Node) -> None:
    """The device holds 40 GiB more than its processes, and did not before the job."""
    node.add(7)
    node.tracker.take(device(START, 1))
    node.tracker.take(a_list(START, {}))
    for second in range(1, 5):
        node.tracker.take(device(START + second, 45))
        node.tracker.take(a_list(START + second, {7: 5 * GIB}))
    assert flags_of(node) == {(0, "sampled"): Flag.UNATTRIBUTED, (7, "sampled"): Flag.UNATTRIBUTED}


def test_who_ends_on_a_full_card_is_censored(node: Node) -> None:
    """The job's own 60 GiB are far from the card, yet its neighbour had the rest: an allocation may have failed."""
    node.add(7)
    node.add(8, job="403")
    node.tracker.take(a_list(START, {7: 60 * GIB, 8: 18 * GIB}))
    node.tracker.take(device(START + 0.5, 78))
    node.proc.remove(7)
    rows = node.tracker.take(a_list(START + 1, {8: 18 * GIB})).rows
    assert {(row.key.job, row.key.pid): row.flags for row in rows if row.ended} == {("402", 0): Flag.CENSORED, ("402", 7): Flag.CENSORED}
    assert all(row.flags == NO_FLAGS for row in node.tracker.everything())


def test_a_lost_gpu_truncates_and_does_not_censor(node: Node) -> None:
    """The job was cut off: that its card was full says nothing."""
    node.add(7)
    node.tracker.take(device(START, 79))
    node.tracker.take(a_list(START, {7: 79 * GIB}))
    rows = node.tracker.take(GpuGone(gpu=CARD, time=START + 1)).rows
    assert {row.flags for row in rows} == {Flag.TRUNCATED}


def test_a_reserved_share_is_not_the_jobs(node: Node) -> None:
    """Full is measured on what programs can have: 77 of 80 GiB where the driver keeps one."""
    gpu = Gpu(uuid=GPU, name="H100", total_bytes=80 * GIB, reserved_bytes=GIB)
    node.add(7)
    node.tracker.take(a_list(START, {7: 77 * GIB}, gpu=gpu))
    node.proc.remove(7)
    assert {row.flags for row in node.tracker.take(a_list(START + 1, {}, gpu=gpu)).rows} == {Flag.CENSORED}


def test_memory_taken_in_advance_is_told(node: Node) -> None:
    """The list before was empty, then 60 of 80 GiB, for ten seconds."""
    node.add(7)
    node.tracker.take(a_list(START, {}))
    for second in range(1, 13):
        node.tracker.take(a_list(START + second, {7: 60 * GIB}))
    assert set(flags_of(node).values()) == {Flag.PREALLOCATED}


@pytest.mark.parametrize(
    ("environment", "want"),
    [
        ({"XLA_PYTHON_CLIENT_PREALLOCATE": "true"}, True),
        ({"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}, False),
        ({"TF_FORCE_GPU_ALLOW_GROWTH": "False"}, True),
        ({}, False),
    ],
)
def test_an_environment_hints(node: Node, environment: dict[str, str], *, want: bool) -> None:
    """With the hint the jump is enough; without it, its flatness must be seen."""
    node.proc.add(7, environment=environment | {"PEAKGATE_PREDICTION": "predictions/p1"})
    assert says_it_preallocates(environment) is want
    node.tracker.take(a_list(START, {}))
    node.tracker.take(a_list(START + 1, {7: 60 * GIB}))
    assert set(flags_of(node).values()) == {Flag.PREALLOCATED if want else NO_FLAGS}
