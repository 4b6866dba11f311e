"""What the agent uses of the module pynvml, as types, and NVML's codes."""

# ruff: noqa: N802, N815 (the Protocols carry NVML's own names)
from __future__ import annotations

import importlib
from typing import Protocol, cast

from peakgate.agent.errors import MissingPartError

# Codes of nvmlReturn_t, in nvml.h.
INVALID_ARGUMENT = 2
NOT_SUPPORTED = 3
NOT_FOUND = 6
INSUFFICIENT_SIZE = 7
DRIVER_NOT_LOADED = 9
LIBRARY_NOT_FOUND = 12
FUNCTION_NOT_FOUND = 13
GPU_IS_LOST = 15
RESET_REQUIRED = 16
LIB_RM_VERSION_MISMATCH = 18
ARGUMENT_VERSION_MISMATCH = 25

GONE_CODES = frozenset({GPU_IS_LOST, RESET_REQUIRED})
"""The GPU does not come back by itself."""
OLD_DRIVER_CODES = frozenset({FUNCTION_NOT_FOUND, ARGUMENT_VERSION_MISMATCH})
NO_SLOT_CODES = frozenset({INVALID_ARGUMENT, NOT_FOUND})
"""What an empty MIG slot answers."""


class MemoryInfo(Protocol):
    """nvmlMemory_t and nvmlMemory_v2_t; `reserved` only in v2."""

    total: int
    reserved: int
    free: int


class ProcessInfo(Protocol):
    """nvmlProcessInfo_t as pynvml gives it: None stands for NVML_VALUE_NOT_AVAILABLE."""

    pid: int
    usedGpuMemory: int | None


class NvmlModule(Protocol):
    """What the agent uses of pynvml."""

    NVMLError: type[Exception]
    nvmlMemory_v2: int

    def nvmlInit(self) -> None: ...
    def nvmlShutdown(self) -> None: ...
    def nvmlSystemGetDriverVersion(self) -> str: ...
    def nvmlDeviceGetCount(self) -> int: ...
    def nvmlDeviceGetHandleByIndex(self, index: int) -> object: ...
    def nvmlDeviceGetUUID(self, handle: object) -> str: ...
    def nvmlDeviceGetName(self, handle: object) -> str: ...
    def nvmlDeviceGetMigMode(self, handle: object) -> list[int]: ...
    def nvmlDeviceGetMaxMigDeviceCount(self, handle: object) -> int: ...
    def nvmlDeviceGetMigDeviceHandleByIndex(self, handle: object, index: int) -> object: ...
    def nvmlDeviceGetMemoryInfo(self, handle: object, version: int | None = None) -> MemoryInfo: ...
    def nvmlDeviceGetComputeRunningProcesses(self, handle: object) -> list[ProcessInfo]: ...


def load_pynvml() -> NvmlModule:
    """The module pynvml; raises MissingPartError that names the extra."""
    try:
        return cast("NvmlModule", importlib.import_module("pynvml"))
    except ModuleNotFoundError as error:
        raise MissingPartError("the agent needs pynvml", remedy="Install peakgate[agent] (it brings nvidia-ml-py)") from error
