"""What a GPU is called besides its UUID, for files and devices that are named by a number.

A GPU has two numbers: its place in NVML's order (`nvidia-smi -i`, what NVML calls the index) and its device file's (/dev/nvidiaN, the
minor number). They differ on many machines, and a scheduler's number may be either: jobstats' docs/setup/gpu_node_scripts.md tells how that
ends in statistics of the wrong GPU.
"""

# ruff: noqa: N802 (the Protocol carries NVML's own names)

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

NUMBERS = ("auto", "index", "minor")
"""Which of the two a file's name means; auto: either, on a GPU where both are the same."""
REFRESH_SECONDS = 60.0
"""NVML's order changes when a GPU is lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuNumbers:
    """The numbers of a GPU; of a MIG instance, those of its GPU and `instance`, its GPU instance id."""

    index: int
    minor: int
    instance: int | None = None

    def name(self, meaning: str) -> str | None:
        """`N` or `N.INSTANCE` with the number that `meaning` says; None where auto cannot tell which number was meant."""
        if meaning == "auto" and self.index != self.minor:
            return None
        number = self.minor if meaning == "minor" else self.index
        return str(number) if self.instance is None else f"{number}.{self.instance}"


class NumbersModule(Protocol):
    """What is used of pynvml: functions of NVML's C API by their own names (docs.nvidia.com/deploy/nvml-api)."""

    NVMLError: type[Exception]

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> object: ...
    def nvmlDeviceGetDeviceHandleFromMigDeviceHandle(self, handle: object) -> object: ...
    def nvmlDeviceGetIndex(self, handle: object) -> int: ...
    def nvmlDeviceGetMinorNumber(self, handle: object) -> int: ...
    def nvmlDeviceGetGpuInstanceId(self, handle: object) -> int: ...


class NvmlNumbers:
    """Asks NVML, which the same thread must have opened. Remembers an answer for a minute."""

    def __init__(self, *, module: NumbersModule, clock: Callable[[], float] = time.monotonic) -> None:
        self._module = module
        self._clock = clock
        self._known: dict[str, tuple[float, GpuNumbers | None]] = {}

    def of(self, gpu_uuid: str) -> GpuNumbers | None:
        """The GPU's numbers, or None when NVML does not say."""
        now = self._clock()
        asked, numbers = self._known.get(gpu_uuid, (float("-inf"), None))
        if now - asked >= REFRESH_SECONDS:
            numbers = self._ask(gpu_uuid)
            self._known[gpu_uuid] = now, numbers
        return numbers

    def _ask(self, gpu_uuid: str) -> GpuNumbers | None:
        module = self._module
        try:
            handle, instance = module.nvmlDeviceGetHandleByUUID(gpu_uuid), None
            if gpu_uuid.startswith("MIG-"):
                instance = module.nvmlDeviceGetGpuInstanceId(handle)
                handle = module.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(handle)
            return GpuNumbers(index=module.nvmlDeviceGetIndex(handle), minor=module.nvmlDeviceGetMinorNumber(handle), instance=instance)
        except module.NVMLError:
            return None
