"""Xid errors: from the event to the row."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs
from tests.unit.agent.builders import GIB, GPU, ONE_GPU, OTHER_GPU, START, TWO_GPUS, SimulatedNode, a_gpu, a_list
from tests.unit.agent.test_tracker import Node

from peakgate.agent.event_thread import EventThread
from peakgate.agent.nvml_events import EventKind, NvmlEvent
from peakgate.agent.peaks import NO_FLAGS, Flag
from peakgate.agent.samples import GpuGone, Sample, XidSample
from peakgate.agent.simulated.library import SimulatedNvml
from peakgate.agent.xid import HARDWARE_XIDS, is_hardware

APPLICATION_XIDS = (13, 31, 43, 45, 68)
"""What NVIDIA's Kubernetes device plugin passes over as application errors (internal/rm/health.go, applicationErrorXids)."""


def patiently(node: SimulatedNode, until: Callable[[list[Sample]], bool]) -> list[Sample]:
    """Samples while the waiting thread, which lives in real time, brings what it has."""
    samples: list[Sample] = []
    for _ in range(400):
        samples += node.run(node.now)
        if until(samples):
            return samples
        time.sleep(0.01)
    raise AssertionError("nothing came")


def has_xid(samples: list[Sample]) -> bool:
    """Whether an Xid is among them."""
    return any(isinstance(sample, XidSample) for sample in samples)


@pytest.mark.parametrize("xid", APPLICATION_XIDS)
def test_an_application_error_is_not_the_hardwares(xid: int) -> None:
    """The GPU is healthy."""
    assert not is_hardware(xid)


def test_known_hardware_errors_are_the_hardwares() -> None:
    """Memory, bus, firmware and links; 63 and 154 are only news of another one."""
    assert all(map(is_hardware, (48, 62, 64, 74, 79, 92, 94, 95, 119, 120, 140)))
    assert not {63, 154} & HARDWARE_XIDS.keys()


def test_an_event_names_its_gpu(simulated: SimulatedNvml) -> None:
    """By the handle's address, since a lost GPU cannot be asked for its UUID any more."""
    node = SimulatedNode(simulated, f"{TWO_GPUS}event 1 at=5 data=79\nerror 15 gpu=1 from=5\n", events=True)
    node.run(4)
    node.now = 5.0
    samples = patiently(node, has_xid)
    node.sampler.close()
    assert [(sample.gpu.uuid, sample.xid) for sample in samples if isinstance(sample, XidSample)] == [(OTHER_GPU, 79)]


def test_under_mig_the_instance_is_named(simulated: SimulatedNvml) -> None:
    """Its neighbours on the same GPU have nothing to do with it."""
    one, two = "MIG-00000000-0000-4000-8000-00000000000a", "MIG-00000000-0000-4000-8000-00000000000b"
    scenario = f"{ONE_GPU}mig 0 uuid={one} total=20G gi=1 ci=0\nmig 0 uuid={two} total=20G gi=2 ci=0\nevent 0 at=5 data=31 gi=2 ci=0\n"
    node = SimulatedNode(simulated, scenario, events=True)
    node.run(4)
    node.now = 5.0
    samples = patiently(node, has_xid)
    node.sampler.close()
    assert [(sample.gpu.uuid, sample.xid) for sample in samples if isinstance(sample, XidSample)] == [(two, 31)]


def test_a_change_of_the_mig_layout_is_looked_at_at_once(simulated: SimulatedNvml) -> None:
    """Not at the next look around, a minute later."""
    new = "MIG-00000000-0000-4000-8000-00000000000a"
    scenario = f"{TWO_GPUS}mig 0 uuid={new} total=20G gi=1 ci=0 from=5\nevent 0 at=5 type=0x100\n"
    node = SimulatedNode(simulated, scenario, events=True)
    node.run(4)
    node.now = 5.0
    patiently(node, lambda _: new in node.sampler.gpus)
    node.sampler.close()
    assert node.now < 20


class Said(EventThread):
    """A thread's place: the simulated library knows no other events than Xid errors and MIG changes."""

    def __init__(self, *events: NvmlEvent) -> None:
        self._events = list(events)

    def follow(self) -> None:
        """Listens to nobody."""

    def collect(self) -> Iterator[NvmlEvent]:
        """Each event once."""
        while self._events:
            yield self._events.pop()


def test_a_gpu_that_says_it_is_unavailable_is_lost(simulated: SimulatedNvml) -> None:
    """Without a call that fails first; it is found again at the next look around if it answers."""
    node = SimulatedNode(simulated, TWO_GPUS)
    node.run(4)
    node.sampler._events = Said(NvmlEvent(kind=EventKind.GPU_UNAVAILABLE, physical_uuid=OTHER_GPU))
    samples = node.run(6)
    assert [sample.gpu.uuid for sample in samples if isinstance(sample, GpuGone)] == [OTHER_GPU]
    assert set(node.sampler.watched.lost) == {OTHER_GPU}
    node.run(80)
    assert set(node.sampler.gpus) == {GPU, OTHER_GPU}


def test_a_set_that_cannot_be_waited_for_is_said_once(simulated: SimulatedNvml) -> None:
    """A lost GPU makes each wait fail at once; the thread neither ends nor spins."""
    node = SimulatedNode(simulated, f"{TWO_GPUS}error 999 function=nvmlEventSetWait_v2\n", events=True)
    with capture_logs() as logs:
        node.run(1)
        time.sleep(0.3)
        node.sampler.close()
    assert sum(entry["event"] == "events not read" for entry in logs) == 1


def an_xid(xid: int, time: float) -> XidSample:
    """An error of the GPU."""
    return XidSample(gpu=a_gpu(), time=time, xid=xid)


@pytest.mark.parametrize(("xid", "want"), [(79, Flag.XID), (31, NO_FLAGS)])
def test_the_rows_of_the_gpu_carry_it(tmp_path: Path, xid: int, want: Flag) -> None:
    """The number on every open row of that GPU, the flag only for the hardware's; the other GPU's rows are not touched."""
    node = Node(tmp_path)
    node.add(7)
    node.add(8, job="403")
    node.tracker.take(a_list(START, {7: GIB}))
    node.tracker.take(a_list(START, {8: GIB}, gpu=a_gpu(OTHER_GPU)))
    rows = node.tracker.take(an_xid(xid, START + 1)).rows
    assert {(row.key.gpu_uuid, row.key.pid, row.xid, row.flags) for row in rows} == {(GPU, 0, xid, want), (GPU, 7, xid, want)}
    assert {row.xid for key, row in node.rows().items() if key[0] == OTHER_GPU} == {0}


def test_of_several_the_highest_number_is_kept(tmp_path: Path) -> None:
    """Rows merge by maximum; the flag stays."""
    node = Node(tmp_path)
    node.add(7)
    node.tracker.take(a_list(START, {7: GIB}))
    for xid in (48, 94, 45):
        node.tracker.take(an_xid(xid, START + 1))
    assert {(row.xid, row.flags) for row in node.rows().values()} == {(94, Flag.XID)}


def test_an_error_that_comes_after_the_end_is_still_the_jobs(tmp_path: Path) -> None:
    """The process was gone a moment before the event came: its rows are written again. A minute later they are not."""
    node = Node(tmp_path)
    node.add(7)
    node.tracker.take(a_list(START, {7: GIB}))
    node.proc.remove(7)
    assert node.tracker.take(a_list(START + 1, {})).events
    rows = node.tracker.take(an_xid(79, START + 2)).rows
    assert {(row.key.pid, row.xid, row.ended) for row in rows} == {(0, 79, True), (7, 79, True)}
    assert node.tracker.take(an_xid(79, START + 60)).rows == []
