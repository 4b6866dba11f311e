"""When which GPU is read.

Two clocks, because a process list costs the driver about 400 times what a memory reading costs and takes a lock that all programs share
(measured by MangoHud, pull request 2104). Both periods are jittered: a fixed period that is locked to the training step misses a spike
of 0.1 s in a step of 2 s for ever in 90 % of phases, a jitter of ±20 % in none (Monte Carlo over ten minutes).
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator

import structlog

from peakgate.agent.errors import NvmlError
from peakgate.agent.nvml import Nvml
from peakgate.agent.nvml_module import GONE_CODES, INVALID_ARGUMENT, LIB_RM_VERSION_MISMATCH, NOT_FOUND
from peakgate.agent.samples import DeviceSample, Gpu, GpuGone, ProcessSample, ReadFailed, Sample

DEVICE_PERIOD_SECONDS = 0.5
PROCESS_PERIOD_SECONDS = 1.0
RESCAN_PERIOD_SECONDS = 60.0
JITTER_RATIO = 0.2
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
    ) -> None:
        self._nvml = nvml
        self._clock = clock
        self._wall = wall
        self._uniform = uniform
        self._periods = (device_period_seconds, process_period_seconds, rescan_period_seconds)
        self._due = [0.0, 0.0, 0.0]
        self._device_bytes: dict[str, int] = {}
        self._highest_bytes: dict[str, int] = {}
        self._said: set[tuple[str, int]] = set()
        self.gpus: dict[str, Gpu] = {}
        self.last_read: dict[str, float] = {}
        """Wall time of the last reading that succeeded, by UUID."""

    def poll(self) -> Iterator[Sample]:
        """Reads whatever is due now. Raises NvmlError only for LIB_RM_VERSION_MISMATCH: the driver was replaced, start again."""
        now = self._clock()
        if now >= self._due[2]:
            yield from self._rescan()
            self._due[2] = now + self._next(2)
        grown: set[str] = set()
        if now >= self._due[0]:
            for gpu in tuple(self.gpus.values()):
                yield from self._read_device(gpu, grown)
            self._due[0] = now + self._next(0)
        all_due = now >= self._due[1]
        for gpu in tuple(self.gpus.values()):
            if all_due or gpu.uuid in grown:
                yield from self._read_processes(gpu)
        if all_due:
            self._due[1] = now + self._next(1)

    def wait_seconds(self) -> float:
        """How long nothing is due."""
        return max(0.0, min(self._due) - self._clock())

    def _next(self, which: int) -> float:
        return self._periods[which] * self._uniform(1 - JITTER_RATIO, 1 + JITTER_RATIO)

    def _rescan(self) -> Iterator[Sample]:
        try:
            inventory = self._nvml.gpus()
        except NvmlError as error:
            self._failed("", error)
            return
        found = {gpu.uuid: gpu for gpu in inventory.gpus}
        if inventory.complete:
            for uuid in self.gpus.keys() - found.keys():
                yield self._forget(self.gpus[uuid])
        for uuid in found.keys() - self.gpus.keys():
            log.info("gpu found", gpu=uuid, name=found[uuid].name, total_bytes=found[uuid].total_bytes)
        self.gpus |= found

    def _read_device(self, gpu: Gpu, grown: set[str]) -> Iterator[Sample]:
        try:
            used_bytes = self._nvml.used_bytes(gpu)
        except NvmlError as error:
            if self._failed(gpu.uuid, error):
                yield self._forget(gpu)
            return
        if used_bytes is None:
            return
        self.last_read[gpu.uuid] = self._wall()
        self._device_bytes[gpu.uuid] = used_bytes
        if used_bytes > self._highest_bytes.get(gpu.uuid, 0) + NEW_HIGH_BYTES:
            self._highest_bytes[gpu.uuid] = used_bytes
            grown.add(gpu.uuid)
        yield DeviceSample(gpu=gpu, time=self._wall(), used_bytes=used_bytes)

    def _read_processes(self, gpu: Gpu) -> Iterator[Sample]:
        try:
            processes = self._nvml.processes(gpu)
        except NvmlError as error:
            gone = self._failed(gpu.uuid, error)
            yield self._forget(gpu) if gone else ReadFailed(gpu=gpu, time=self._wall())
            return
        if processes is None:
            return
        if not processes:
            self._highest_bytes[gpu.uuid] = self._device_bytes.get(gpu.uuid, 0)  # the next job starts from its own heights
        self.last_read[gpu.uuid] = self._wall()
        yield ProcessSample(gpu=gpu, time=self._wall(), processes=processes)

    def _failed(self, uuid: str, error: NvmlError) -> bool:
        """Notes a failure; True when the GPU is gone. A failure is logged once until it changes."""
        if error.code == LIB_RM_VERSION_MISMATCH:
            raise error
        if (uuid, error.code) not in self._said:
            self._said.add((uuid, error.code))
            log.warning("nvml call failed", gpu=uuid, function=error.function, code=error.code)
        return error.code in GONE_CODES or (uuid.startswith("MIG-") and error.code in {INVALID_ARGUMENT, NOT_FOUND})

    def _forget(self, gpu: Gpu) -> GpuGone:
        log.error("gpu gone", gpu=gpu.uuid)
        self.gpus.pop(gpu.uuid, None)
        self._highest_bytes.pop(gpu.uuid, None)
        self._said = {(uuid, code) for uuid, code in self._said if uuid != gpu.uuid}
        return GpuGone(gpu=gpu, time=self._wall())
