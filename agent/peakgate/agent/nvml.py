"""NVML through pynvml (the module of the nvidia-ml-py distribution), with plain values and our own errors.

Sources: nvml.h of the CUDA toolkit (codes, structures), pynvml.py of nvidia-ml-py 13.615.71.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from peakgate.agent.errors import NvmlError
from peakgate.agent.nvml_accounting import Accounting
from peakgate.agent.nvml_calls import Calls, CallStatistics
from peakgate.agent.nvml_codes import NO_SLOT_CODES, NOT_FOUND
from peakgate.agent.nvml_events import EventSet
from peakgate.agent.nvml_module import MemoryInfo, NvmlModule
from peakgate.agent.nvml_processes import ProcessLists
from peakgate.agent.reactions import WHOLE_NODE
from peakgate.agent.samples import Accounted, Gpu, GpuProcess


@dataclass(frozen=True, slots=True)
class Inventory:
    """The GPUs that answered; `complete` when no call failed, so that a GPU that is missing is really gone."""

    gpus: tuple[Gpu, ...]
    complete: bool


class Nvml:
    """The GPUs of this node. Used by one thread (its event sets by another); every method raises NvmlError and nothing else."""

    def __init__(self, *, module: NvmlModule, clock: Callable[[], float] = time.perf_counter) -> None:
        self._module = module
        self._calls = Calls(module=module, clock=clock)
        self._lists = ProcessLists(calls=self._calls, module=module)
        self._accounting = Accounting(calls=self._calls, module=module)
        self._handles: dict[str, object] = {}
        self._physical: dict[str, object] = {}
        self._memory_versions = (_second_memory_call(module), module.nvmlDeviceGetMemoryInfo)

    @property
    def statistics(self) -> CallStatistics:
        """What the calls cost and how they failed."""
        return self._calls.statistics

    @property
    def physical_uuids(self) -> frozenset[str]:
        """The GPUs of the last look around, none of them a MIG instance."""
        return frozenset(self._physical)

    def start(self) -> str:
        """Opens NVML; returns the driver's version."""
        self._calls.call(self._module.nvmlInit, "")
        try:
            return self._calls.call(self._module.nvmlSystemGetDriverVersion, "")
        except NvmlError:
            self.stop()
            raise

    def stop(self) -> None:
        """Closes NVML; an open session blocks a GPU reset and a driver update. Handles end with it."""
        self._handles, self._physical = {}, {}
        self._calls.forget()
        self._calls.call(self._module.nvmlShutdown, "")

    def gpus(self) -> Inventory:
        """Every GPU that answers, and in place of a GPU in MIG mode its instances. One that fails does not hide the others."""
        found: dict[str, Gpu] = {}
        handles: dict[str, object] = {}
        self._physical, complete = {}, True
        for index in range(self._calls.call(self._module.nvmlDeviceGetCount, "")):
            try:
                for gpu, handle in self._watched(self._calls.call(self._module.nvmlDeviceGetHandleByIndex, "", index)):
                    found[gpu.uuid], handles[gpu.uuid] = gpu, handle
            except NvmlError as error:
                if error.reaction in WHOLE_NODE:
                    raise
                complete = False
        self._handles = handles if complete else self._handles | handles
        return Inventory(gpus=tuple(found.values()), complete=complete)

    def used_bytes(self, gpu: Gpu) -> int | None:
        """Memory that programs hold on the GPU, without what the driver reserves; None: the GPU cannot say.

        `total - reserved - free` is right whether a driver counts `reserved` in `used` or not (nvml.h says it does, real cards do not).
        """
        memory = self._memory(gpu.uuid, self._handle(gpu.uuid))
        return None if memory is None else max(0, memory.total - _reserved(memory) - memory.free)

    def processes(self, gpu: Gpu, *, thorough: bool = True) -> tuple[GpuProcess, ...] | None:
        """The processes with their memory, each pid once; None: the GPU cannot say. See `ProcessLists.read`."""
        return self._lists.read(gpu.uuid, self._handle(gpu.uuid), thorough=thorough)

    def accounts(self, gpu: Gpu) -> bool:
        """Whether the driver accounts on this GPU; never on a MIG instance."""
        return gpu.instance is None and self._accounting.is_on(gpu.uuid, self._handle(gpu.uuid))

    def switch_accounting_on(self, gpu: Gpu) -> None:
        """Needs root; nothing happens on a MIG instance."""
        if gpu.instance is None:
            self._accounting.switch_on(gpu.uuid, self._handle(gpu.uuid))

    def accounted(self, gpu: Gpu, pid: int) -> Accounted | None:
        """What the driver's accounting has on a process; None: nothing (yet)."""
        return self._accounting.stats(gpu.uuid, self._handle(gpu.uuid), pid)

    def is_persistent(self, gpu: Gpu) -> bool | None:
        """Whether the driver stays loaded for this GPU when nobody uses it; None: the GPU cannot say."""
        mode = self._calls.newest((self._module.nvmlDeviceGetPersistenceMode,), gpu.uuid, self._handle(gpu.uuid))
        return None if mode is None else bool(mode)

    def open_events(self) -> EventSet:
        """The events of the physical GPUs from now on."""
        return EventSet(calls=self._calls, module=self._module, handles=self._physical)

    def _watched(self, handle: object) -> Iterator[tuple[Gpu, object]]:
        """What is watched of a physical GPU: itself, or its MIG instances."""
        uuid = self._calls.call(self._module.nvmlDeviceGetUUID, "", handle)
        self._physical[uuid] = handle
        if not self._is_in_mig_mode(uuid, handle):
            yield self._describe(uuid, handle), handle
            return
        for slot in range(self._calls.call(self._module.nvmlDeviceGetMaxMigDeviceCount, uuid, handle)):
            try:
                instance = self._calls.call(self._module.nvmlDeviceGetMigDeviceHandleByIndex, uuid, handle, slot)
            except NvmlError as error:
                if error.code not in NO_SLOT_CODES:
                    raise
                continue
            number = self._calls.call(self._module.nvmlDeviceGetGpuInstanceId, uuid, instance)
            instance_uuid = self._calls.call(self._module.nvmlDeviceGetUUID, uuid, instance)
            yield self._describe(instance_uuid, instance, physical_uuid=uuid, number=number), instance

    def _is_in_mig_mode(self, uuid: str, handle: object) -> bool:
        try:
            modes = self._calls.newest((self._module.nvmlDeviceGetMigMode,), uuid, handle)
        except NvmlError as error:
            if error.reaction in WHOLE_NODE:
                raise
            return False
        return modes is not None and modes[0] == 1

    def _describe(self, uuid: str, handle: object, *, physical_uuid: str = "", number: int | None = None) -> Gpu:
        name = self._calls.call(self._module.nvmlDeviceGetName, uuid, handle)
        memory = self._memory(uuid, handle)
        total, reserved = (0, 0) if memory is None else (memory.total, _reserved(memory))
        return Gpu(uuid=uuid, name=name, total_bytes=total, reserved_bytes=reserved, physical_uuid=physical_uuid, instance=number)

    def _memory(self, uuid: str, handle: object) -> MemoryInfo | None:
        return self._calls.newest(self._memory_versions, uuid, handle)

    def _handle(self, uuid: str) -> object:
        if uuid not in self._handles:  # an unset handle would crash the library
            raise NvmlError(function="nvmlDeviceGetHandle", code=NOT_FOUND, gpu=uuid)
        return self._handles[uuid]


def _second_memory_call(module: NvmlModule) -> Callable[[object], MemoryInfo]:
    """pynvml chooses the version by an argument; NVML's own name is what the metrics show."""

    def nvmlDeviceGetMemoryInfo_v2(handle: object) -> MemoryInfo:  # noqa: N802 (the name that the metrics show is NVML's)
        return module.nvmlDeviceGetMemoryInfo(handle, module.nvmlMemory_v2)

    return nvmlDeviceGetMemoryInfo_v2


def _reserved(memory: MemoryInfo) -> int:
    """The first version of the structure does not have the field and counts it in `used`."""
    return int(getattr(memory, "reserved", 0))
