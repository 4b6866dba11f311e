"""NVML's events of the physical GPUs: Xid errors, changes of the MIG layout, a GPU that is not there any more."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

from peakgate.agent.errors import NvmlError
from peakgate.agent.nvml_calls import Calls
from peakgate.agent.nvml_codes import GPU_UNAVAILABLE_EVENT, MIG_CONFIG_EVENT, NO_INSTANCE, TIMEOUT, XID_EVENT
from peakgate.agent.nvml_module import NvmlModule


class EventKind(IntEnum):
    """The events that the agent listens to, by their bit in nvml.h."""

    XID = XID_EVENT
    MIG_CHANGED = MIG_CONFIG_EVENT
    GPU_UNAVAILABLE = GPU_UNAVAILABLE_EVENT


@dataclass(frozen=True, slots=True, kw_only=True)
class NvmlEvent:
    """`physical_uuid` is empty when NVML does not say which GPU; `instance` is the GPU instance under MIG; `number` the Xid."""

    kind: EventKind
    physical_uuid: str = ""
    instance: int | None = None
    number: int = 0


class EventSet:
    """The events of some GPUs from now on. Raises NvmlError. Waited for by one thread, freed by the same.

    A GPU that is lost cannot be asked for its UUID any more, so the handles are known by their address from the start.
    """

    def __init__(self, *, calls: Calls, module: NvmlModule, handles: Mapping[str, object]) -> None:
        self._calls = calls
        self._module = module
        self._uuids = {_address(handle): uuid for uuid, handle in handles.items()}
        self._set = calls.call(module.nvmlEventSetCreate, "")
        self.registered = [uuid for uuid, handle in handles.items() if self._register(uuid, handle)]

    def wait(self, timeout_ms: int) -> NvmlEvent | None:
        """The next event; None when there was none in time, or one that we do not know."""
        try:
            data = self._calls.untimed(self._module.nvmlEventSetWait_v2, "", self._set, timeout_ms)
        except NvmlError as error:
            if error.code == TIMEOUT:
                return None
            raise
        if data.eventType not in set(EventKind):
            return None
        return NvmlEvent(
            kind=EventKind(data.eventType),
            physical_uuid=self._uuids.get(_address(data.device), ""),
            instance=None if data.gpuInstanceId == NO_INSTANCE else data.gpuInstanceId,
            number=data.eventData,
        )

    def free(self) -> None:
        """Gives the set back."""
        self._calls.call(self._module.nvmlEventSetFree, "", self._set)

    def _register(self, uuid: str, handle: object) -> bool:
        """A GPU without events is one that nothing is heard of; the others are not harmed."""
        try:
            offered = self._calls.call(self._module.nvmlDeviceGetSupportedEventTypes, uuid, handle)
            wanted = offered & sum(EventKind)
            if wanted:
                self._calls.call(self._module.nvmlDeviceRegisterEvents, uuid, handle, wanted, self._set)
        except NvmlError:
            return False
        return bool(wanted)


def _address(handle: object) -> int:
    """A pynvml handle is a pointer, and a new object each time that it is given out."""
    return ctypes.cast(handle, ctypes.c_void_p).value or 0  # type: ignore[arg-type]  # the module's own pointer type
