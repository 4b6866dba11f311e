"""Who may report, how often, and how long a report waits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.agent.builders import GIB, GPU, START, ProcTree, a_gpu

from peakgate.agent import helper_reports
from peakgate.agent.helper_reports import BURST, REFILL_SECONDS, WAIT_SECONDS, HelperReports, HelperSample
from peakgate.agent.helper_socket import Datagram
from peakgate.agent.proc import ProcessId, ProcFolder
from peakgate.v1.allocator_report import AllocatorReport, PhaseReport, encode

REPORT = AllocatorReport(gpu_uuid=GPU, allocated_bytes=30 * GIB, reserved_bytes=32 * GIB, steps_done=3)
SECRET = "do-not-repeat-this"


class Desk:
    """Reports on a node with one GPU, on which a test says who is."""

    def __init__(self, folder: Path) -> None:
        self.now = 0.0
        self.proc = ProcTree(folder / "proc")
        self.on_gpu: dict[int, ProcessId] = {}
        proc = ProcFolder(root=self.proc.root)
        self.reports = HelperReports(proc=proc, clock=lambda: self.now, wall=lambda: START + self.now)

    def find(self, pid: int, start_ticks: int, gpu_uuid: str) -> tuple[str, ProcessId] | None:
        """As the tracker finds."""
        process = self.on_gpu.get(pid)
        return (GPU, process) if process and start_ticks in (process.start_ticks, 0) and gpu_uuid == GPU else None

    def send(self, pid: int = 7, report: AllocatorReport = REPORT, *, uid: int = 1000) -> None:
        """As the socket hands it over."""
        self.reports.take(Datagram(pid=pid, uid=uid, gid=uid, content=encode(report)))

    def due(self) -> list[HelperSample]:
        """One look of the watcher."""
        return list(self.reports.due(self.find, {GPU: a_gpu()}))


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """Process 7 lives and is on the GPU."""
    desk = Desk(tmp_path)
    desk.proc.add(7)
    desk.on_gpu[7] = ProcessId(7, 100)
    return desk


def test_a_report_of_a_process_on_the_gpu_is_taken(desk: Desk) -> None:
    """With the kernel's pid and the time at which it came."""
    desk.send()
    assert [(each.process, each.gpu.uuid, each.time, each.report) for each in desk.due()] == [(ProcessId(7, 100), GPU, START, REPORT)]
    assert desk.due() == []
    assert desk.reports.counts["taken"] == 1


def test_nobody_can_report_for_another(desk: Desk) -> None:
    """A process that NVML does not list on that GPU has nothing to say about it, whatever it writes."""
    desk.proc.add(8)
    desk.send(pid=8)
    assert desk.due() == []
    desk.now += WAIT_SECONDS + 1
    assert desk.due() == []
    assert (desk.reports.counts["not_on_a_gpu"], desk.reports.counts["taken"]) == (1, 0)


def test_a_report_before_the_first_list_waits_for_it(desk: Desk) -> None:
    """The newest of a process stands for all before it."""
    process = desk.on_gpu.pop(7)
    desk.send()
    assert desk.due() == []
    desk.send(report=replace(REPORT, steps_done=4))
    desk.now += WAIT_SECONDS - 1
    assert desk.due() == []
    desk.on_gpu[7] = process
    assert [each.report.steps_done for each in desk.due()] == [4]


def test_a_pid_that_was_given_again_is_another_process(desk: Desk) -> None:
    """The sender's start is read when its datagram comes: a report never goes to a later process of the same pid."""
    desk.send()
    desk.on_gpu[7] = ProcessId(7, 900)
    assert desk.due() == []


def test_the_last_words_of_a_process_that_is_gone_are_taken(desk: Desk) -> None:
    """A helper's last datagram is read after its process has left /proc, while the last list still has it."""
    desk.proc.remove(7)
    desk.send()
    assert [each.process for each in desk.due()] == [ProcessId(7, 100)]


def test_a_flood_of_one_process_is_cut_and_leaves_the_others_alone(desk: Desk) -> None:
    """A burst, then one every half second; another process is heard all the while."""
    desk.proc.add(8)
    for _ in range(1000):
        desk.send()
    desk.send(pid=8)
    assert desk.reports.counts["rate"] == 1000 - BURST
    desk.due()
    desk.now += REFILL_SECONDS
    desk.send()
    desk.send()
    assert desk.reports.counts["rate"] == 1000 - BURST + 1


def test_one_user_cannot_crowd_out_the_others(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reports that wait are bounded for each user and in all."""
    monkeypatch.setattr(helper_reports, "MAX_WAITING_OF_UID", 5)
    for pid in range(100, 200):
        desk.send(pid=pid, uid=666)
    desk.send()
    assert [each.process.pid for each in desk.due()] == [7]
    assert desk.reports.counts["full"] == 95


def test_reports_between_two_looks_are_bounded(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A watcher that hangs in the driver does not let the memory grow."""
    monkeypatch.setattr(helper_reports, "MAX_ARRIVED", 10)
    for pid in range(100, 150):
        desk.send(pid=pid)
    assert desk.reports.counts["full"] == 40


@pytest.mark.parametrize("payload", [b"", b"{", SECRET.encode(), b'{"v":1,"gpu":"%s"}' % SECRET.encode()])
def test_bytes_that_are_no_report_are_counted_and_not_repeated(desk: Desk, payload: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing that a sender wrote reaches the log."""
    desk.reports.take(Datagram(pid=7, uid=1000, gid=1000, content=payload))
    out = capsys.readouterr()
    assert (desk.due(), desk.reports.counts["bad"], SECRET in out.out + out.err) == ([], 1, False)


def test_a_log_line_a_minute_at_most(desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever is sent, the log stays readable."""
    for _ in range(BURST):
        desk.reports.take(Datagram(pid=7, uid=1000, gid=1000, content=b"x"))
    assert capsys.readouterr().out.count("not taken") == 1


@pytest.mark.parametrize(
    "grown",
    [
        lambda size: replace(REPORT, reserved_bytes=size),
        lambda size: replace(REPORT, allocated_bytes=size),
        lambda size: replace(REPORT, phases=(PhaseReport(phase="loss", allocated_bytes=size, reserved_bytes=0),)),
    ],
)
def test_a_peak_above_the_card_is_refused(desk: Desk, grown: Callable[[int], AllocatorReport]) -> None:
    """It is another unit or an invention, in whichever figure."""
    desk.send(report=grown(82 * GIB))
    assert (desk.due(), desk.reports.counts["above_the_card"]) == ([], 1)
    desk.send(report=grown(80 * GIB))
    assert len(desk.due()) == 1
