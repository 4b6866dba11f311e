"""The processes that are on the GPUs now, and whose they are.

A failed read never ends a process; a process that is missing from one good list while /proc still shows it is given a second one.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from peakgate.agent.owner import Owner
from peakgate.agent.peaks import Attempt, Training
from peakgate.agent.proc import ProcessId, ProcFolder
from peakgate.v1.allocator_report import bare_uuid

ENDED_AFTER_MISSES = 2
"""Good lists without a process that /proc still shows, after which it has left the GPU."""

GpuPlace = tuple[str, ProcessId]
"""A GPU by its UUID, and a process on it."""


@dataclass(slots=True)
class _Open:
    """A process on a GPU."""

    owner: Owner
    misses: int = 0


class OpenProcesses:
    """Each by GPU. Changed by one thread."""

    def __init__(self, *, proc: ProcFolder) -> None:
        self._proc = proc
        self._open: dict[GpuPlace, _Open] = {}

    @property
    def gpus(self) -> set[str]:
        """The GPUs with a process on them. May be read from another thread."""
        return {gpu_uuid for gpu_uuid, _ in list(self._open)}

    def owner_of(self, gpu_uuid: str, process: ProcessId) -> Owner | None:
        """Whose the process is; None while it is not on this GPU."""
        state = self._open.get((gpu_uuid, process))
        return state.owner if state else None

    def on(self, gpu_uuid: str) -> list[ProcessId]:
        """The processes of a GPU."""
        return [process for uuid, process in self._open if uuid == gpu_uuid]

    def lives(self, attempt: Attempt) -> bool:
        """Whether a process of the attempt is on any GPU."""
        return any(state.owner.attempt == attempt for state in self._open.values())

    def trains_on(self, gpu_uuid: str, training: Training) -> bool:
        """Whether a process of the training is on this GPU."""
        return any(uuid == gpu_uuid and state.owner.training == training for (uuid, _), state in self._open.items())

    def identify(self, gpu_uuid: str, pid: int) -> ProcessId:
        """A process that /proc no longer shows but NVML still lists is the one that had this pid at the last list."""
        start_ticks = self._proc.start_ticks(pid)
        if start_ticks is not None:
            return ProcessId(pid, start_ticks)
        return next((process for process in self.on(gpu_uuid) if process.pid == pid), ProcessId(pid, 0))

    def find(self, pid: int, start_ticks: int, gpu_uuid: str) -> GpuPlace | None:
        """The GPU and the process that a helper's report is of; None while no list has it.

        CUDA before 12 gives the GPU's UUID for a MIG instance, and torch before 2.4 none at all: then it is the only one of the process.
        """
        on = [place for place in self._open if place[1].pid == pid and (not start_ticks or place[1].start_ticks in (start_ticks, 0))]
        named = [place for place in on if bare_uuid(place[0]) == bare_uuid(gpu_uuid)]
        only = on if len(on) == 1 and (not gpu_uuid or on[0][0].startswith("MIG-")) else []
        return next(iter(named or only), None)

    def take_in(self, gpu_uuid: str, process: ProcessId, owner: Owner) -> Training | None:
        """A list has the process. The training that it leaves when a late drop-in file names another one; None: it stays or is new."""
        before = self._open.get((gpu_uuid, process))
        if before and before.owner == owner:
            before.misses = 0
            return None
        self._open[gpu_uuid, process] = _Open(owner)
        return before.owner.training if before and before.owner.training != owner.training else None

    def missing(self, gpu_uuid: str, present: Container[ProcessId]) -> list[ProcessId]:
        """The processes that a good list without them shows to have left the GPU."""
        return [process for process in self.on(gpu_uuid) if process not in present and self._has_left(gpu_uuid, process)]

    def close(self, gpu_uuid: str, process: ProcessId) -> Owner:
        """The process has left the GPU; whose it was."""
        return self._open.pop((gpu_uuid, process)).owner

    def _has_left(self, gpu_uuid: str, process: ProcessId) -> bool:
        state = self._open[gpu_uuid, process]
        state.misses += 1
        return state.misses >= ENDED_AFTER_MISSES or self._proc.start_ticks(process.pid) != process.start_ticks
