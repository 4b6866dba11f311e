"""NVML through pynvml (the module of the nvidia-ml-py distribution), one call at a time, with plain values and our own errors.

Sources: nvml.h of the CUDA toolkit (codes, structures), pynvml.py of nvidia-ml-py 13.615.71.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

from peakgate.agent.errors import NvmlError
from peakgate.agent.nvml_module import (
    INSUFFICIENT_SIZE,
    LIB_RM_VERSION_MISMATCH,
    NO_SLOT_CODES,
    NOT_FOUND,
    NOT_SUPPORTED,
    OLD_DRIVER_CODES,
    MemoryInfo,
    NvmlModule,
    ProcessInfo,
)
from peakgate.agent.samples import Gpu, GpuProcess

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Inventory:
    """The GPUs that answered; `complete` when no call failed, so that a GPU that is missing is really gone."""

    gpus: tuple[Gpu, ...]
    complete: bool


@dataclass(slots=True)
class CallStatistics:
    """Wall time and number of the NVML calls, by function, and the failures by (function, code)."""

    seconds: dict[str, float]
    calls: dict[str, int]
    errors: dict[tuple[str, int], int]


class Nvml:
    """The GPUs of this node. Used by one thread; every method raises NvmlError and nothing else."""

    def __init__(self, *, module: NvmlModule, clock: Callable[[], float] = time.perf_counter) -> None:
        self._module = module
        self._clock = clock
        self._handles: dict[str, object] = {}
        self._unsupported: set[tuple[str, str]] = set()
        self._old_memory_call = False
        self.statistics = CallStatistics({}, {}, {})

    def start(self) -> str:
        """Opens NVML; returns the driver's version."""
        self._call(self._module.nvmlInit, "")
        return self._call(self._module.nvmlSystemGetDriverVersion, "")

    def stop(self) -> None:
        """Closes NVML; an open session blocks a GPU reset and a driver update."""
        self._handles.clear()
        self._unsupported.clear()
        self._call(self._module.nvmlShutdown, "")

    def gpus(self) -> Inventory:
        """Every GPU that answers, and in place of a GPU in MIG mode its instances. One that fails does not hide the others."""
        found: dict[str, Gpu] = {}
        handles: dict[str, object] = {}
        complete = True
        for index in range(self._call(self._module.nvmlDeviceGetCount, "")):
            try:
                for handle in self._targets(self._call(self._module.nvmlDeviceGetHandleByIndex, "", index)):
                    gpu = self._describe(handle)
                    found[gpu.uuid], handles[gpu.uuid] = gpu, handle
            except NvmlError as error:
                if error.code == LIB_RM_VERSION_MISMATCH:
                    raise
                complete = False
        self._handles = handles if complete else self._handles | handles
        return Inventory(gpus=tuple(found.values()), complete=complete)

    def used_bytes(self, gpu: Gpu) -> int | None:
        """Memory that programs hold on the GPU, without what the driver reserves; None: the GPU cannot say.

        `total - reserved - free` is right whether a driver counts `reserved` in `used` or not (nvml.h says it does, real cards do not).
        """
        if self._knows_unsupported(gpu.uuid, "memory"):
            return None
        handle = self._handle(gpu.uuid)
        try:
            memory = self._memory(gpu.uuid, handle)
        except NvmlError as error:
            if error.code != NOT_SUPPORTED:
                raise
            self._unsupported.add((gpu.uuid, "memory"))
            return None
        reserved = 0 if self._old_memory_call else memory.reserved
        return max(0, memory.total - reserved - memory.free)

    def processes(self, gpu: Gpu) -> tuple[GpuProcess, ...] | None:
        """The compute processes with their memory, each pid once; None: the GPU cannot say."""
        if self._knows_unsupported(gpu.uuid, "processes"):
            return None
        handle = self._handle(gpu.uuid)
        try:
            rows = self._process_rows(gpu.uuid, handle)
        except NvmlError as error:
            if error.code != NOT_SUPPORTED:
                raise
            self._unsupported.add((gpu.uuid, "processes"))
            return None
        return tuple(_each_pid_once(rows))

    def _targets(self, handle: object) -> Iterator[object]:
        try:
            in_mig_mode = self._call(self._module.nvmlDeviceGetMigMode, "", handle)[0] == 1
        except NvmlError:
            in_mig_mode = False
        if not in_mig_mode:
            yield handle
            return
        for slot in range(self._call(self._module.nvmlDeviceGetMaxMigDeviceCount, "", handle)):
            try:
                yield self._call(self._module.nvmlDeviceGetMigDeviceHandleByIndex, "", handle, slot)
            except NvmlError as error:
                if error.code not in NO_SLOT_CODES:
                    raise

    def _describe(self, handle: object) -> Gpu:
        uuid = self._call(self._module.nvmlDeviceGetUUID, "", handle)
        name = self._call(self._module.nvmlDeviceGetName, uuid, handle)
        try:
            total = self._memory(uuid, handle).total
        except NvmlError as error:
            if error.code != NOT_SUPPORTED:
                raise
            total = 0
        return Gpu(uuid=uuid, name=name, total_bytes=total)

    def _memory(self, uuid: str, handle: object) -> MemoryInfo:
        if not self._old_memory_call:
            try:
                return self._call(self._module.nvmlDeviceGetMemoryInfo, uuid, handle, self._module.nvmlMemory_v2)
            except NvmlError as error:
                if error.code not in OLD_DRIVER_CODES:
                    raise
                self._old_memory_call = True
        return self._call(self._module.nvmlDeviceGetMemoryInfo, uuid, handle)

    def _process_rows(self, uuid: str, handle: object) -> list[ProcessInfo]:
        # pynvml asks for the size, then for the rows; a burst of new processes in between is answered with INSUFFICIENT_SIZE.
        try:
            return self._call(self._module.nvmlDeviceGetComputeRunningProcesses, uuid, handle)
        except NvmlError as error:
            if error.code != INSUFFICIENT_SIZE:
                raise
        return self._call(self._module.nvmlDeviceGetComputeRunningProcesses, uuid, handle)

    def _handle(self, uuid: str) -> object:
        if uuid not in self._handles:  # an unset handle would crash the library
            raise NvmlError(function="nvmlDeviceGetHandle", code=NOT_FOUND, gpu=uuid)
        return self._handles[uuid]

    def _knows_unsupported(self, uuid: str, what: str) -> bool:
        return (uuid, what) in self._unsupported

    def _call(self, function: Callable[P, T], gpu: str, /, *args: P.args, **kwargs: P.kwargs) -> T:
        name = getattr(function, "__name__", "nvml")
        started = self._clock()
        try:
            return function(*args, **kwargs)
        except self._module.NVMLError as error:
            code = int(getattr(error, "value", 999))
            self.statistics.errors[name, code] = self.statistics.errors.get((name, code), 0) + 1
            raise NvmlError(function=name, code=code, gpu=gpu, detail=str(error)) from error
        finally:
            self.statistics.seconds[name] = self.statistics.seconds.get(name, 0.0) + self._clock() - started
            self.statistics.calls[name] = self.statistics.calls.get(name, 0) + 1


def _each_pid_once(rows: Iterable[ProcessInfo]) -> Iterator[GpuProcess]:
    highest: dict[int, int | None] = {}
    for row in rows:
        known = highest.get(row.pid)
        highest[row.pid] = known if row.usedGpuMemory is None else max(known or 0, row.usedGpuMemory)
    return (GpuProcess(pid=pid, used_bytes=used) for pid, used in highest.items())
