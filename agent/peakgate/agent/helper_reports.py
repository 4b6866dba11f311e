"""What training processes say of themselves, through the helper's socket: who may say it, how often, and of which GPU.

The kernel stamps each datagram with the sender's pid and uid, so nobody can report for another process: a report counts only for a process
with that pid that NVML lists on the GPU that the report names. A report that comes before the first process list waits for it.
"""

from __future__ import annotations

import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import structlog

from peakgate.agent.helper_socket import Datagram
from peakgate.agent.proc import ProcessId, ProcFolder
from peakgate.agent.samples import Gpu
from peakgate.v1.allocator_report import AllocatorReport, BadReportError, bare_uuid, decode

BURST, REFILL_SECONDS = 20, 0.5
"""Datagrams of one process: so many at once, and one more every so often. The helper sends one a second at most, and one when it fails."""
MAX_PIDS = 4096
"""Senders whose rate is remembered."""
MAX_ARRIVED = 2048
"""Reports between two looks of the watcher; the oldest give way."""
MAX_WAITING = 1024
"""Reports that wait for a process list, a process and GPU each: several times the ranks of the largest node."""
MAX_WAITING_OF_UID = 64
"""Of one user, who would otherwise crowd out the others: four programs on each of sixteen GPUs."""
WAIT_SECONDS = 60.0
"""How long a report waits for a process list with its process: the list comes every second, and later on a node whose driver is slow."""
SLACK_RATIO = 1.02
"""Above the card: another unit, or an invention."""
LOG_SECONDS = 60.0
"""A sender that is refused again and again does not fill the log."""

REASONS = ("taken", "bad", "rate", "full", "not_on_a_gpu", "above_the_card")
"""What became of a datagram."""

FindProcess = Callable[[int, int, str], tuple[str, ProcessId] | None]
"""(pid, its start, UUID or empty) to the GPU and the process on it; None while no list has it."""

log = structlog.get_logger("peakgate.agent.helper")


@dataclass(frozen=True, slots=True, kw_only=True)
class HelperSample:
    """What a process that is on the GPU has said of its own memory there. `time` is in seconds since the epoch."""

    gpu: Gpu
    time: float
    process: ProcessId
    report: AllocatorReport


@dataclass(frozen=True, slots=True, kw_only=True)
class _Arrived:
    """A report with its sender. `start_ticks` is 0 for a sender that had gone when the datagram was read."""

    pid: int
    start_ticks: int
    uid: int
    report: AllocatorReport
    time: float
    moment: float


class HelperReports:
    """`take` is called by the socket's thread, `due` by the watcher's."""

    def __init__(
        self,
        *,
        proc: ProcFolder,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._proc = proc
        self._clock = clock
        self._wall = wall
        self._arrived: deque[_Arrived] = deque()
        self._waiting: OrderedDict[tuple[int, str], _Arrived] = OrderedDict()
        self._tokens: OrderedDict[int, tuple[float, float]] = OrderedDict()
        self._logged_at = -LOG_SECONDS
        self.counts: Counter[str] = Counter(dict.fromkeys(REASONS, 0))
        """Datagrams by what became of them."""

    def take(self, datagram: Datagram) -> None:
        """A datagram with the kernel's word on its sender."""
        if self._may_speak(datagram.pid):
            self._decode(datagram)
        else:
            self.counts["rate"] += 1

    def due(self, find: FindProcess, gpus: Mapping[str, Gpu]) -> Iterator[HelperSample]:
        """The reports whose process is known, each once, on the GPUs by UUID. Those of others wait, at most WAIT_SECONDS."""
        while self._arrived:
            self._keep(self._arrived.popleft())
        now = self._clock()
        for key, arrived in list(self._waiting.items()):
            found = find(arrived.pid, arrived.start_ticks, arrived.report.gpu_uuid)
            if found:
                del self._waiting[key]
                yield from self._sample(arrived, gpus.get(found[0]), found[1])
            elif now - arrived.moment > WAIT_SECONDS:
                del self._waiting[key]
                self._refuse("not_on_a_gpu", arrived.pid, "no process list of that GPU has the sender")

    def _decode(self, datagram: Datagram) -> None:
        pid = datagram.pid
        try:
            report = decode(datagram.content)
        except BadReportError as error:
            self._refuse("bad", pid, str(error))
            return
        if len(self._arrived) >= MAX_ARRIVED:
            self.counts["full"] += 1
            return
        start_ticks = self._proc.start_ticks(pid) or 0
        now = self._clock()
        self._arrived.append(_Arrived(pid=pid, start_ticks=start_ticks, uid=datagram.uid, report=report, time=self._wall(), moment=now))

    def _keep(self, arrived: _Arrived) -> None:
        """The newest of a process and GPU stands for those before it: figures only grow. One user cannot crowd out the others."""
        key = arrived.pid, bare_uuid(arrived.report.gpu_uuid)
        before = self._waiting.pop(key, None)
        of_uid = sum(other.uid == arrived.uid for other in self._waiting.values())
        if before is None and (len(self._waiting) >= MAX_WAITING or of_uid >= MAX_WAITING_OF_UID):
            self.counts["full"] += 1
            return
        self._waiting[key] = arrived

    def _sample(self, arrived: _Arrived, gpu: Gpu | None, process: ProcessId) -> Iterator[HelperSample]:
        if gpu is None:
            self._refuse("not_on_a_gpu", arrived.pid, "the GPU is gone")
            return
        report = arrived.report
        figures = [
            report.allocated_bytes,
            report.reserved_bytes,
            *(size for each in report.phases for size in (each.allocated_bytes, each.reserved_bytes)),
        ]
        if gpu.total_bytes and max(figures) > gpu.total_bytes * SLACK_RATIO:
            self._refuse("above_the_card", arrived.pid, "a peak is above the card's memory")
            return
        self.counts["taken"] += 1
        yield HelperSample(gpu=gpu, time=arrived.time, process=process, report=report)

    def _may_speak(self, pid: int) -> bool:
        """A bucket of tokens a pid; the pids that were silent for longest are forgotten."""
        now = self._clock()
        tokens, since = self._tokens.pop(pid, (float(BURST), now))
        tokens = min(float(BURST), tokens + (now - since) / REFILL_SECONDS)
        self._tokens[pid] = (max(0.0, tokens - 1), now)
        if len(self._tokens) > MAX_PIDS:
            self._tokens.popitem(last=False)
        return tokens >= 1

    def _refuse(self, reason: str, pid: int, why: str) -> None:
        self.counts[reason] += 1
        if self._clock() - self._logged_at >= LOG_SECONDS:
            self._logged_at = self._clock()
            log.warning("a helper's report is not taken", pid=pid, reason=reason, why=why)
