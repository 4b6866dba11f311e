"""Which GPUs are watched, which were lost, and when each was last read."""

from __future__ import annotations

from collections.abc import Callable

import structlog

from peakgate.agent.nvml import Inventory
from peakgate.agent.nvml_events import NvmlEvent
from peakgate.agent.samples import Gpu

log = structlog.get_logger("peakgate.agent.sampler")


class WatchedGpus:
    """By UUID. Changed by the thread that owns NVML, read by others."""

    def __init__(self, *, clock: Callable[[], float]) -> None:
        self._clock = clock
        self.gpus: dict[str, Gpu] = {}
        self.lost: dict[str, Gpu] = {}
        """GPUs that were watched and are not any more."""
        self.last_read: dict[str, float] = {}
        """Time of the last reading that succeeded, on the clock."""

    def missing(self, inventory: Inventory) -> list[Gpu]:
        """The watched GPUs that a look around shows to be gone; none where it did not see everything."""
        found = {gpu.uuid for gpu in inventory.gpus}
        return [gpu for uuid, gpu in self.gpus.items() if uuid not in found] if inventory.complete else []

    def add(self, inventory: Inventory) -> None:
        """Watches what a look around found."""
        for gpu in inventory.gpus:
            if gpu.uuid not in self.gpus:
                log.info("gpu found", gpu=gpu.uuid, name=gpu.name, total_bytes=gpu.total_bytes)
            self.gpus[gpu.uuid] = gpu
            self.lost.pop(gpu.uuid, None)

    def forget(self, gpu: Gpu) -> None:
        """The GPU is gone; an instance that was destroyed does not come back."""
        log.error("gpu gone", gpu=gpu.uuid)
        self.gpus.pop(gpu.uuid, None)
        if gpu.instance is None:
            self.lost[gpu.uuid] = gpu
        else:
            self.last_read.pop(gpu.uuid, None)

    def seen(self, gpu: Gpu) -> float:
        """The GPU was read; when."""
        now = self._clock()
        self.last_read[gpu.uuid] = now
        return now

    def age_seconds(self, gpu_uuid: str) -> float:
        """Time since the GPU was last read."""
        now = self._clock()
        return max(0.0, now - self.last_read.get(gpu_uuid, now))

    def meant_by(self, event: NvmlEvent) -> list[Gpu]:
        """A GPU, or under MIG the instance that is named, or all of them. Why a GPU was lost may be said when it is lost already."""
        return [
            gpu
            for gpu in (*self.gpus.values(), *self.lost.values())
            if (gpu.physical_uuid or gpu.uuid) == event.physical_uuid and event.instance in {None, gpu.instance}
        ]
