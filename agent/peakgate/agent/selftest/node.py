"""This node as the checks see it: pynvml, the agent's own Nvml over it, and the GPUs that answered."""

# ruff: noqa: N802 (the Protocol carries NVML's own names)
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import ParamSpec, Protocol, TypeVar

from peakgate.agent.errors import NvmlError
from peakgate.agent.nvml import Nvml
from peakgate.agent.nvml_calls import translated
from peakgate.agent.nvml_codes import NOT_SUPPORTED
from peakgate.agent.nvml_module import MemoryInfo, NvmlModule, ProcessInfo
from peakgate.agent.nvml_processes import Versions, list_calls
from peakgate.agent.proc import ProcFolder
from peakgate.agent.reactions import Reaction
from peakgate.agent.samples import Gpu, Kind

P = ParamSpec("P")
T = TypeVar("T")


class Memory(MemoryInfo, Protocol):
    """nvmlMemory_v2_t, whole."""

    used: int


class Binding(NvmlModule, Protocol):
    """What the checks use of pynvml beside what the agent does, by the names of NVML's C API as in NvmlModule."""

    def nvmlSystemGetNVMLVersion(self) -> str: ...
    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> object: ...
    def nvmlDeviceGetMemoryInfo(self, handle: object, version: int | None = None) -> Memory: ...
    def nvmlDeviceGetComputeInstanceId(self, handle: object) -> int: ...
    def nvmlDeviceGetAccountingPids(self, handle: object) -> Sequence[int]: ...


LIST_NAMES = {Kind.COMPUTE: "compute", Kind.GRAPHICS: "graphics", Kind.MPS: "MPS"}


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
        return translated(self.binding, function, "", *args, **kwargs)

    def ask_if_supported(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | None:
        """The same; None where this GPU has no such thing."""
        try:
            return self.ask(function, *args, **kwargs)
        except NvmlError as error:
            if error.code != NOT_SUPPORTED:
                raise
            return None

    def process_lists(self) -> dict[str, Versions]:
        """The calls that list processes, by what people call the list."""
        return {LIST_NAMES[kind]: versions for kind, versions in list_calls(self.binding).items()}

    def newest(self, versions: Versions, handle: object) -> Sequence[ProcessInfo] | None:
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
