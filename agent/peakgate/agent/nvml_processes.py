"""The processes on a GPU: NVML keeps the compute, the graphics and the MPS clients in three lists, and a process can be in several."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from peakgate.agent.nvml_calls import Calls
from peakgate.agent.nvml_module import NvmlModule, ProcessInfo
from peakgate.agent.samples import GpuProcess, Kind

Versions = tuple[Callable[[object], list[ProcessInfo]], Callable[[object], list[ProcessInfo]]]
"""Two versions of one call, the newer first."""


def list_calls(module: NvmlModule) -> dict[Kind, Versions]:
    """The calls that list processes.

    The versions are called by name: pynvml's unversioned functions turn a driver that is too old for the newest version into an
    exception that is no NVMLError (throwOnVersionMismatch in pynvml.py).
    """
    return {
        Kind.COMPUTE: (module.nvmlDeviceGetComputeRunningProcesses_v3, module.nvmlDeviceGetComputeRunningProcesses_v2),
        Kind.GRAPHICS: (module.nvmlDeviceGetGraphicsRunningProcesses_v3, module.nvmlDeviceGetGraphicsRunningProcesses_v2),
        Kind.MPS: (module.nvmlDeviceGetMPSComputeRunningProcesses_v3, module.nvmlDeviceGetMPSComputeRunningProcesses_v2),
    }


class ProcessLists:
    """Reads the lists of a GPU and merges them by pid.

    A list costs the driver milliseconds under a lock that the GPU's programs wait for (MangoHud, pull request 2104). So a graphics or
    MPS list that was empty is read only at a thorough look; one that held somebody is read each time.
    """

    def __init__(self, *, calls: Calls, module: NvmlModule) -> None:
        self._calls = calls
        self._quiet: set[tuple[str, Kind]] = set()
        self._lists = list_calls(module)

    def read(self, uuid: str, handle: object, *, thorough: bool) -> tuple[GpuProcess, ...] | None:
        """Each pid once; None: the GPU has none of the lists. Raises NvmlError when one of them fails: half a list says nothing."""
        found: list[tuple[Kind, list[ProcessInfo]]] = []
        answered = False
        for kind, versions in self._lists.items():
            if kind is not Kind.COMPUTE and not thorough and (uuid, kind) in self._quiet:
                answered = True
                continue
            rows = self._calls.newest(versions, uuid, handle)
            if rows is None:
                continue
            answered = True
            found.append((kind, rows))
            (self._quiet.discard if rows else self._quiet.add)((uuid, kind))
        return tuple(_each_pid_once(found)) if answered else None


def _each_pid_once(lists: Iterable[tuple[Kind, list[ProcessInfo]]]) -> Iterator[GpuProcess]:
    kinds: dict[int, Kind] = {}
    used: dict[int, int | None] = {}
    for kind, rows in lists:
        for row in rows:
            kinds[row.pid] = kinds.get(row.pid, kind) | kind
            known = used.get(row.pid)
            used[row.pid] = known if row.usedGpuMemory is None else max(known or 0, row.usedGpuMemory)
    return (GpuProcess(pid=pid, used_bytes=used[pid], kinds=kinds[pid]) for pid in kinds)
