"""The watching thread, when NVML or the disk fail."""

from __future__ import annotations

import threading
from pathlib import Path

from tests.unit.agent.builders import GPU, ONE_GPU, ProcTree, SimulatedNode

from peakgate.agent.attribution import Attribution
from peakgate.agent.jobs_folder import JobsFolder
from peakgate.agent.nvml_codes import DRIVER_NOT_LOADED, LIB_RM_VERSION_MISMATCH
from peakgate.agent.proc import ProcFolder
from peakgate.agent.simulated.library import SimulatedNvml
from peakgate.agent.spool import Spool
from peakgate.agent.tracker import Tracker
from peakgate.agent.watcher import Watcher

TRAINER = "process 0 pid=7 memory=0:1G\n"


class WaitingEvent(threading.Event):
    """A stop event whose waits are noted and take no time; it is set after `rounds` of them."""

    def __init__(self, node: SimulatedNode, rounds: int) -> None:
        super().__init__()
        self.waits: list[float] = []
        self._node = node
        self._rounds = rounds

    def wait(self, timeout: float | None = None) -> bool:
        """Moves the scenario's clock instead of waiting."""
        self.waits.append(timeout or 0.0)
        self._node.now += timeout or 0.0
        self._node.simulated.set_time(self._node.now)
        if len(self.waits) >= self._rounds:
            self.set()
        return self.is_set()


def a_watcher(node: SimulatedNode, folder: Path, *, rounds: int = 100) -> tuple[Watcher, Spool, WaitingEvent]:
    """A watcher of the simulated node with a spool of its own."""
    tree = ProcTree(folder / "proc")
    tree.add(7, cgroup="0::/system.slice/slurmstepd.scope/job_402/step_0")
    proc = ProcFolder(root=tree.root)
    attribution = Attribution(cluster="alpha", proc=proc, jobs=JobsFolder(folder=folder / "jobs"))
    spool = Spool(path=folder / "agent.db")
    stop = WaitingEvent(node, rounds)
    tracker = Tracker(attribution=attribution, proc=proc, boot_id="boot-1")
    watcher = Watcher(
        nvml=node.nvml, sampler=node.sampler, tracker=tracker, spool=spool, stop=stop, uniform=lambda low, high: (low + high) / 2
    )
    return watcher, spool, stop


def test_peaks_reach_the_spool(simulated: SimulatedNvml, tmp_path: Path) -> None:
    """One look at a busy node is a row for the process and one for the job."""
    watcher, spool, _ = a_watcher(SimulatedNode(simulated, ONE_GPU + TRAINER), tmp_path)
    assert watcher.run_once()
    found = [(peak.row.key.job, peak.row.key.pid) for peak in spool.batch(limit=9, up_to_version=99)]
    assert sorted(found) == [("402", 0), ("402", 7)]
    spool.close()


def test_a_driver_that_is_not_loaded_is_waited_for(simulated: SimulatedNvml, tmp_path: Path) -> None:
    """The waits grow to five minutes; when the driver is there, watching begins."""
    node = SimulatedNode(simulated, ONE_GPU)
    simulated.load(f"{ONE_GPU}{TRAINER}error {DRIVER_NOT_LOADED} function=nvmlInitWithFlags until=900\n")
    simulated.set_time(0.0)
    watcher, spool, stop = a_watcher(node, tmp_path, rounds=30)
    watcher.run()
    assert stop.waits[:8] == [5, 10, 20, 40, 80, 160, 300, 300]
    assert (watcher.driver_version, spool.waiting()) == ("580.65.06", 2)
    spool.close()


def test_without_a_driver_one_look_says_so(simulated: SimulatedNvml, tmp_path: Path) -> None:
    """`once` on a node without a GPU is no crash."""
    node = SimulatedNode(simulated, ONE_GPU)
    simulated.load(f"{ONE_GPU}error {DRIVER_NOT_LOADED}\n")
    watcher, spool, _ = a_watcher(node, tmp_path)
    assert not watcher.run_once()
    assert not watcher.is_up
    spool.close()


def test_a_replaced_driver_ends_the_thread(simulated: SimulatedNvml, tmp_path: Path) -> None:
    """It ends with what it saw in the spool, and says why, so that the process is replaced."""
    node = SimulatedNode(simulated, f"{ONE_GPU}{TRAINER}error {LIB_RM_VERSION_MISMATCH} from=4\n")
    watcher, spool, stop = a_watcher(node, tmp_path)
    watcher.run()
    assert (watcher.driver_replaced, spool.waiting(), len(stop.waits) < 100) == (True, 2, True)
    spool.close()


def test_a_spool_that_cannot_be_written_is_made_up_for(simulated: SimulatedNvml, tmp_path: Path) -> None:
    """While the disk fails the rows wait in memory; when it is back they are written, the ended ones too."""
    node = SimulatedNode(simulated, f"{ONE_GPU}{TRAINER.strip()},3:end\n")
    watcher, spool, _ = a_watcher(node, tmp_path)
    spool._connection.execute("PRAGMA query_only = ON")  # every write fails, as on a read-only disk
    while node.now < 8:
        watcher.look()
        node.now += watcher.sampler.wait_seconds() + 1e-6
        simulated.set_time(node.now)
    assert spool.waiting() == 0
    spool._connection.execute("PRAGMA query_only = OFF")
    watcher.run_once()
    rows = [peak.row for peak in spool.batch(limit=9, up_to_version=99)]
    assert {(row.key.gpu_uuid, row.key.pid, row.ended) for row in rows} == {(GPU, 0, True), (GPU, 7, True)}
    spool.close()
