"""The watching thread, when NVML or the disk fail."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from tests.unit.agent.builders import GPU, ONE_GPU, START, ProcTree, SimulatedNode

from peakgate.agent.attribution import Attribution
from peakgate.agent.hold import Hold
from peakgate.agent.jobs_folder import JobsFolder
from peakgate.agent.nvml_codes import DRIVER_NOT_LOADED, LIB_RM_VERSION_MISMATCH, UNINITIALIZED
from peakgate.agent.peaks import JobEvent, PeakRow
from peakgate.agent.proc import ProcFolder
from peakgate.agent.simulated.library import SimulatedNvml
from peakgate.agent.spool import Spool
from peakgate.agent.tracker import Tracker
from peakgate.agent.watcher import Watcher

SLURM_CGROUP = "0::/system.slice/slurmstepd.scope/job_402/step_0"
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
    tree.add(7, cgroup=SLURM_CGROUP)
    proc = ProcFolder(root=tree.root)
    attribution = Attribution(cluster="alpha", proc=proc, jobs=JobsFolder(folder=folder / "jobs"))
    spool = Spool(path=folder / "agent.db")
    stop = WaitingEvent(node, rounds)
    tracker = Tracker(attribution=attribution, proc=proc, boot_id="boot-1", start_time_of=lambda _: START)
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


def test_a_driver_that_fits_no_more_from_the_start_is_waited_for(simulated: SimulatedNvml, tmp_path: Path) -> None:
    """An update without a reboot: a new process would not fit either, so none is started again and again."""
    node = SimulatedNode(simulated, ONE_GPU)
    simulated.load(f"{ONE_GPU}{TRAINER}error {LIB_RM_VERSION_MISMATCH} function=nvmlInitWithFlags until=60\n")
    watcher, spool, stop = a_watcher(node, tmp_path, rounds=10)
    watcher.run()
    assert not watcher.driver_replaced
    assert stop.waits[:4] == [5, 10, 20, 40]
    assert spool.waiting() == 2
    spool.close()


def test_a_session_that_is_not_open_any_more_is_opened_at_once(simulated: SimulatedNvml, tmp_path: Path) -> None:
    """UNINITIALIZED for a moment: no wait of seconds, the process lives on in its row, and no handle of before is used."""
    node = SimulatedNode(simulated, f"{ONE_GPU}{TRAINER}error {UNINITIALIZED} function=nvmlDeviceGetMemoryInfo_v2 from=4 until=4.4\n")
    watcher, spool, stop = a_watcher(node, tmp_path, rounds=60)
    watcher.run()
    assert max(stop.waits) <= 5
    assert node.now > 10
    rows = [peak.row for peak in spool.batch(limit=9, up_to_version=999)]
    assert {(row.key.pid, row.ended) for row in rows} == {(0, False), (7, False)}
    assert max(row.last_time for row in rows) > START + 8
    spool.close()


def test_a_session_that_stays_closed_is_waited_for(simulated: SimulatedNvml, tmp_path: Path) -> None:
    """The same code for good: the waits grow, so that the agent does not spin."""
    node = SimulatedNode(simulated, ONE_GPU)
    simulated.load(f"{ONE_GPU}error {UNINITIALIZED} function=nvmlDeviceGetCount_v2\n")
    watcher, spool, stop = a_watcher(node, tmp_path, rounds=8)
    watcher.run()
    assert [wait for wait in stop.waits if wait] == [5, 10, 20, 40]
    spool.close()


class PausingEvent(WaitingEvent):
    """Begins a hold at the third wait, and looks at the library meanwhile."""

    def __init__(self, node: SimulatedNode, rounds: int, hold: list[Hold]) -> None:
        super().__init__(node, rounds)
        self.hold = hold
        self.calls_while_held = 0

    def wait(self, timeout: float | None = None) -> bool:
        """Moves the clock."""
        if len(self.waits) == 3:
            self.hold[0].begin(10.0)
            self._node.simulated.calls()
        elif self.hold[0].is_on and self.hold[0].wait_free(0.0):
            self.calls_while_held += self._node.simulated.calls()
        return super().wait(timeout)


def test_a_pause_closes_nvml_and_ends_by_itself(simulated: SimulatedNvml, tmp_path: Path) -> None:
    """While it lasts no call is made; then the watch goes on with the same records, and the gap is on them."""
    node = SimulatedNode(simulated, ONE_GPU + TRAINER)
    watcher, spool, _ = a_watcher(node, tmp_path)
    watcher.hold = Hold(clock=node.clock)
    stop = PausingEvent(node, 90, [watcher.hold])
    watcher._stop = stop
    watcher.run()
    assert stop.calls_while_held <= 1  # nvmlShutdown itself
    assert not watcher.hold.is_on
    row = next(peak.row for peak in spool.batch(limit=9, up_to_version=999) if peak.row.key.pid == 7)
    assert 9 < row.longest_gap_seconds < 12
    assert (row.ended, row.key.pid_start_ticks) == (False, 100)
    spool.close()


def test_a_driver_that_was_replaced_while_paused_is_noticed(simulated: SimulatedNvml, tmp_path: Path) -> None:
    """The library in this process is the old one: the opening after the pause tells, and a new process is asked for."""
    node = SimulatedNode(simulated, f"driver 580.65.06\ndriver 590.1 from=8\n{ONE_GPU}{TRAINER}")
    watcher, spool, _ = a_watcher(node, tmp_path)
    watcher.hold = Hold(clock=node.clock)
    watcher._stop = PausingEvent(node, 200, [watcher.hold])
    watcher.run()
    assert watcher.driver_replaced
    assert spool.waiting() == 2
    spool.close()


def test_a_spool_that_cannot_be_written_is_made_up_for(simulated: SimulatedNvml, tmp_path: Path) -> None:
    """While the disk fails the rows wait in memory; when it is back they are written, the ended ones too."""
    node = SimulatedNode(simulated, f"{ONE_GPU}{TRAINER.strip()},3:end\n")
    watcher, spool, _ = a_watcher(node, tmp_path)
    spool._file._connection.execute("PRAGMA query_only = ON")  # every write fails, as on a read-only disk
    while node.now < 8:
        watcher.look()
        node.now += watcher.sampler.wait_seconds() + 1e-6
        simulated.set_time(node.now)
    assert spool.waiting() == 0
    spool._file._connection.execute("PRAGMA query_only = OFF")
    watcher.run_once()
    rows = [peak.row for peak in spool.batch(limit=9, up_to_version=99)]
    assert {(row.key.gpu_uuid, row.key.pid, row.ended) for row in rows} == {(GPU, 0, True), (GPU, 7, True)}
    spool.close()


def test_the_end_of_a_job_is_written_with_its_exact_peak(simulated: SimulatedNvml, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever reads the spool at any moment finds the end of a job together with the driver's maximum: what follows would be too late."""
    node = SimulatedNode(simulated, f"epoch {START}\n{ONE_GPU.strip()} accounting=on\n{TRAINER.strip()},3:end\n")
    watcher, spool, _ = a_watcher(node, tmp_path)
    written: list[set[tuple[str, bool]]] = []
    put = spool.put

    def noted(*, rows: list[PeakRow], events: list[JobEvent]) -> None:
        written.append({(row.key.source, row.ended) for row in rows if row.key.pid == 0})
        put(rows=rows, events=events)

    monkeypatch.setattr(spool, "put", noted)
    while node.now < 8:
        if node.now > 2 and (tmp_path / "proc" / "7").exists():
            ProcTree(tmp_path / "proc").remove(7)
        watcher.look()
        node.now += watcher.sampler.wait_seconds() + 1e-6
        simulated.set_time(node.now)
    assert next(rows for rows in written if ("sampled", True) in rows) == {("sampled", True), ("accounting", True)}
    spool.close()
