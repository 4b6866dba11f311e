"""When which GPU is read.

Two clocks, because a process list costs the driver about 400 times what a memory reading costs and takes a lock that all programs share
(measured by MangoHud, pull request 2104). Both periods are jittered, and the one of the lists keeps to a budget (pace.py).
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator

import structlog

from peakgate.agent.accounting import AccountingWatch
from peakgate.agent.errors import NvmlError
from peakgate.agent.event_thread import EventThread
from peakgate.agent.nvml import Nvml
from peakgate.agent.nvml_codes import NO_SLOT_CODES
from peakgate.agent.nvml_events import EventKind
from peakgate.agent.pace import BudgetedPace, Pace
from peakgate.agent.reactions import WHOLE_NODE, Reaction
from peakgate.agent.samples import AccountingSample, DeviceSample, Gpu, GpuGone, ProcessSample, ReadFailed, Sample, XidSample
from peakgate.agent.watched_gpus import WatchedGpus

DEVICE_PERIOD_SECONDS = 0.5
"""A spike that comes with every step of a second or more is met within a few steps (pace.py, JITTER_RATIO)."""
PROCESS_PERIOD_SECONDS = 1.0
RESCAN_PERIOD_SECONDS = 60.0
"""GPUs are seldom lost or divided, and a change of the MIG layout is told by an event."""
THOROUGH_EVERY = 10
"""Every so many process lists the graphics and MPS lists are read where they were empty, too."""
NEW_HIGH_BYTES = 64 << 20
"""A device reading this far above the highest one so far calls for a process list at once."""

log = structlog.get_logger("peakgate.agent.sampler")


class Sampler:
    """Reads what is due. `poll` and `wait_seconds` are called in turn by one thread."""

    def __init__(
        self,
        *,
        nvml: Nvml,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        uniform: Callable[[float, float], float] = random.uniform,
        device_period_seconds: float = DEVICE_PERIOD_SECONDS,
        process_period_seconds: float = PROCESS_PERIOD_SECONDS,
        rescan_period_seconds: float = RESCAN_PERIOD_SECONDS,
        events: EventThread | None = None,
        enable_accounting: bool = False,
        call_clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._nvml = nvml
        self._clock = clock
        self._wall = wall
        self._events = events
        self._call_clock = call_clock
        self._device_pace = Pace(period_seconds=device_period_seconds, uniform=uniform)
        self.process_pace = BudgetedPace(period_seconds=process_period_seconds, uniform=uniform)
        self._rescan_pace = Pace(period_seconds=rescan_period_seconds, uniform=uniform)
        self._accounting = AccountingWatch(nvml=nvml, uniform=uniform, switch_on=enable_accounting)
        self._device_bytes: dict[str, int] = {}
        self._highest_bytes: dict[str, int] = {}
        self._said: set[tuple[str, int]] = set()
        self._lists = 0
        self._spent_seconds = 0.0
        self.watched = WatchedGpus(clock=clock)

    @property
    def gpus(self) -> dict[str, Gpu]:
        """The GPUs that are watched, by UUID."""
        return self.watched.gpus

    def poll(self) -> Iterator[Sample]:
        """Reads whatever is due now. Raises NvmlError only for what is about the whole node (reactions.WHOLE_NODE)."""
        yield from self._take_events()
        now = self._clock()
        if self._rescan_pace.is_due(now):
            yield from self._rescan()
            self._rescan_pace.begin_next(now)
        grown: set[str] = set()
        if self._device_pace.is_due(now):
            for gpu in tuple(self.gpus.values()):
                yield from self._read_device(gpu, grown)
            self._device_pace.begin_next(now)
        yield from self._read_lists(now, grown)
        for gpu, processes in self._accounting.read(tuple(self.gpus.values()), now):
            yield AccountingSample(gpu=gpu, time=self._wall(), clock=now, processes=processes)

    def wait_seconds(self) -> float:
        """How long nothing is due."""
        paces = (self._device_pace, self.process_pace, self._rescan_pace)
        return max(0.0, min(pace.due_at for pace in paces) - self._clock())

    def reopened(self) -> None:
        """NVML was opened, perhaps again: the handles are to be fetched before anything is read."""
        self._rescan_pace.hurry()

    def close(self) -> None:
        """NVML is about to be closed."""
        if self._events:
            self._events.stop()

    def _read_lists(self, now: float, grown: set[str]) -> Iterator[Sample]:
        all_due = self.process_pace.is_due(now)
        thorough = all_due and self._lists % THOROUGH_EVERY == 0
        for gpu in tuple(self.gpus.values()):
            if all_due or gpu.uuid in grown:
                yield from self._read_processes(gpu, thorough=thorough or gpu.uuid in grown)
        if all_due:
            self._lists += 1
            self.process_pace.spend(self._spent_seconds)
            self._spent_seconds = 0.0
            self.process_pace.begin_next(now)

    def _rescan(self) -> Iterator[Sample]:
        try:
            inventory = self._nvml.gpus()
        except NvmlError as error:
            self._failed("", error)
            return
        for gpu in self.watched.missing(inventory):
            yield self._forget(gpu)
        self.watched.add(inventory)
        if self._events:
            self._events.follow()

    def _read_device(self, gpu: Gpu, grown: set[str]) -> Iterator[Sample]:
        try:
            used_bytes = self._nvml.used_bytes(gpu)
        except NvmlError as error:
            if self._failed(gpu.uuid, error):
                yield self._forget(gpu)
            return
        if used_bytes is None:
            return
        now = self.watched.seen(gpu)
        self._device_bytes[gpu.uuid] = used_bytes
        if used_bytes > self._highest_bytes.get(gpu.uuid, 0) + NEW_HIGH_BYTES:
            self._highest_bytes[gpu.uuid] = used_bytes
            grown.add(gpu.uuid)
        yield DeviceSample(gpu=gpu, time=self._wall(), clock=now, used_bytes=used_bytes)

    def _read_processes(self, gpu: Gpu, *, thorough: bool) -> Iterator[Sample]:
        started = self._call_clock()
        try:
            processes = self._nvml.processes(gpu, thorough=thorough)
        except NvmlError as error:
            gone = self._failed(gpu.uuid, error)
            yield self._forget(gpu) if gone else ReadFailed(gpu=gpu, time=self._wall(), clock=self._clock())
            return
        finally:
            self._spent_seconds += self._call_clock() - started
        if processes is None:
            return
        if not processes:
            self._highest_bytes[gpu.uuid] = self._device_bytes.get(gpu.uuid, 0)  # the next job starts from its own heights
        now = self.watched.seen(gpu)
        self._accounting.see_list(gpu, (process.pid for process in processes), now)
        yield ProcessSample(gpu=gpu, time=self._wall(), clock=now, processes=processes)

    def _take_events(self) -> Iterator[Sample]:
        for event in self._events.collect() if self._events else ():
            if event.kind is EventKind.MIG_CHANGED:
                log.info("mig layout changed", gpu=event.physical_uuid)
                self._rescan_pace.hurry()
            for gpu in self.watched.meant_by(event):
                if event.kind is EventKind.XID:
                    log.warning("xid", gpu=gpu.uuid, xid=event.number)
                    yield XidSample(gpu=gpu, time=self._wall(), clock=self._clock(), xid=event.number)
                elif event.kind is EventKind.GPU_UNAVAILABLE and gpu.uuid in self.gpus:
                    yield self._forget(gpu)

    def _failed(self, uuid: str, error: NvmlError) -> bool:
        """Notes a failure; True when the GPU is gone. A failure is logged once until it changes."""
        if error.reaction in WHOLE_NODE:
            raise error
        if (uuid, error.code) not in self._said:
            self._said.add((uuid, error.code))
            log.warning("nvml call failed", gpu=uuid, function=error.function, code=error.code, remedy=error.remedy)
        return error.reaction is Reaction.gpu_gone or (uuid.startswith("MIG-") and error.code in NO_SLOT_CODES)

    def _forget(self, gpu: Gpu) -> GpuGone:
        self.watched.forget(gpu)
        self._accounting.forget(gpu)
        self._highest_bytes.pop(gpu.uuid, None)
        self._said = {(uuid, code) for uuid, code in self._said if uuid != gpu.uuid}
        return GpuGone(gpu=gpu, time=self._wall(), clock=self._clock())
