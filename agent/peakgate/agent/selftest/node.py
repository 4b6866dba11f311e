"""This node as the checks see it: pynvml, the agent's own Nvml over it, and the GPUs that answered."""

# ruff: noqa: N802, N815 (the Protocols carry NVML's own names)
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import ParamSpec, Protocol, TypeVar

from peakgate.agent.errors import NvmlError
from peakgate.agent.nvml import Nvml
from peakgate.agent.nvml_codes import NOT_SUPPORTED
from peakgate.agent.proc import ProcFolder
from peakgate.agent.reactions import Reaction
from peakgate.agent.samples import Gpu

P = ParamSpec("P")
T = TypeVar("T")


class Memory(Protocol):
    """nvmlMemory_v2_t."""

    total: int
    reserved: int
    free: int
    used: int


class Row(Protocol):
    """nvmlProcessInfo_t as pynvml gives it: None stands for NVML_VALUE_NOT_AVAILABLE."""

    pid: int
    usedGpuMemory: int | None


Versions = tuple[Callable[[object], Sequence[Row]], Callable[[object], Sequence[Row]]]
"""Two versions of one call."""


class Accounted(Protocol):
    """nvmlAccountingStats_t as pynvml gives it; `startTime` is in microseconds since the epoch."""

    maxMemoryUsage: int | None
    startTime: int
    isRunning: int


class Binding(Protocol):
    """What the checks use of pynvml beside what the agent's own class uses."""

    NVMLError: type[Exception]
    nvmlMemory_v2: int

    def nvmlSystemGetNVMLVersion(self) -> str: ...
    def nvmlDeviceGetCount(self) -> int: ...
    def nvmlDeviceGetHandleByIndex(self, index: int) -> object: ...
    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> object: ...
    def nvmlDeviceGetUUID(self, handle: object) -> str: ...
    def nvmlDeviceGetMemoryInfo(self, handle: object, version: int | None = None) -> Memory: ...
    def nvmlDeviceGetComputeRunningProcesses_v3(self, handle: object) -> Sequence[Row]: ...
    def nvmlDeviceGetComputeRunningProcesses_v2(self, handle: object) -> Sequence[Row]: ...
    def nvmlDeviceGetGraphicsRunningProcesses_v3(self, handle: object) -> Sequence[Row]: ...
    def nvmlDeviceGetGraphicsRunningProcesses_v2(self, handle: object) -> Sequence[Row]: ...
    def nvmlDeviceGetMPSComputeRunningProcesses_v3(self, handle: object) -> Sequence[Row]: ...
    def nvmlDeviceGetMPSComputeRunningProcesses_v2(self, handle: object) -> Sequence[Row]: ...
    def nvmlDeviceGetMigMode(self, handle: object) -> Sequence[int]: ...
    def nvmlDeviceGetMaxMigDeviceCount(self, handle: object) -> int: ...
    def nvmlDeviceGetMigDeviceHandleByIndex(self, handle: object, index: int) -> object: ...
    def nvmlDeviceGetGpuInstanceId(self, handle: object) -> int: ...
    def nvmlDeviceGetComputeInstanceId(self, handle: object) -> int: ...
    def nvmlDeviceGetAccountingMode(self, handle: object) -> int: ...
    def nvmlDeviceGetAccountingPids(self, handle: object) -> Sequence[int]: ...
    def nvmlDeviceGetAccountingStats(self, handle: object, pid: int) -> Accounted: ...
    def nvmlDeviceGetPersistenceMode(self, handle: object) -> int: ...
    def nvmlDeviceGetSupportedEventTypes(self, handle: object) -> int: ...
    def nvmlDeviceRegisterEvents(self, handle: object, types: int, events: object) -> None: ...
    def nvmlEventSetCreate(self) -> object: ...
    def nvmlEventSetWait_v2(self, events: object, timeout_ms: int) -> object: ...
    def nvmlEventSetFree(self, events: object) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """NVML is open while the checks run. Every call of theirs raises NvmlError and nothing else."""

    binding: Binding
    nvml: Nvml
    driver: str
    gpus: tuple[Gpu, ...]
    """GPUs, and in place of one in MIG mode its instances."""
    complete: bool
    """Every GPU answered."""
    proc: ProcFolder
    wall: Callable[[], float]
    clock: Callable[[], float]

    def ask(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """One call of pynvml."""
        try:
            return function(*args, **kwargs)
        except self.binding.NVMLError as error:
            name = getattr(function, "__name__", "nvml")
            raise NvmlError(function=name, code=int(getattr(error, "value", 999)), detail=str(error)) from error

    def ask_if_supported(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | None:
        """The same; None where this GPU has no such thing."""
        try:
            return self.ask(function, *args, **kwargs)
        except NvmlError as error:
            if error.code != NOT_SUPPORTED:
                raise
            return None

    def process_lists(self) -> dict[str, Versions]:
        """The calls that list processes, newest version first. pynvml's calls without a version raise what is no NVMLError."""
        ask = self.binding
        return {
            "compute": (ask.nvmlDeviceGetComputeRunningProcesses_v3, ask.nvmlDeviceGetComputeRunningProcesses_v2),
            "graphics": (ask.nvmlDeviceGetGraphicsRunningProcesses_v3, ask.nvmlDeviceGetGraphicsRunningProcesses_v2),
            "MPS": (ask.nvmlDeviceGetMPSComputeRunningProcesses_v3, ask.nvmlDeviceGetMPSComputeRunningProcesses_v2),
        }

    def newest(self, versions: Versions, handle: object) -> Sequence[Row] | None:
        """What the newest version answers that this driver has; None where this GPU has no such list."""
        newer, older = versions
        try:
            return self.ask_if_supported(newer, handle)
        except NvmlError as error:
            if error.reaction is not Reaction.older_call:
                raise
            return self.ask_if_supported(older, handle)

    def handle(self, gpu: Gpu) -> object:
        """pynvml's handle of a GPU or an instance."""
        return self.ask(self.binding.nvmlDeviceGetHandleByUUID, gpu.uuid)

    def cards(self) -> Iterator[tuple[str, object]]:
        """(UUID, handle) of each whole GPU that answers."""
        for index in range(self.ask(self.binding.nvmlDeviceGetCount)):
            try:
                handle = self.ask(self.binding.nvmlDeviceGetHandleByIndex, index)
                uuid = self.ask(self.binding.nvmlDeviceGetUUID, handle)
            except NvmlError:
                continue
            yield uuid, handle

    def in_mig_mode(self, handle: object) -> bool:
        """Whether a whole GPU is divided."""
        mode = self.ask_if_supported(self.binding.nvmlDeviceGetMigMode, handle)
        return mode is not None and mode[0] == 1
