"""The whole GPU's memory between two process lists: it stands in for a process whose own figure is not available."""

from __future__ import annotations

from dataclasses import dataclass, field

from peakgate.agent.proc import ProcessId


@dataclass(slots=True)
class DeviceMemory:
    """Readings of one GPU since its last process list."""

    latest_bytes: int | None = None
    highest_before_bytes: int = 0
    """The highest reading between the last two lists."""
    _highest_bytes: int = 0
    _processes: frozenset[ProcessId] = field(default=frozenset())

    def see(self, used_bytes: int) -> None:
        """Takes one reading."""
        self.latest_bytes = used_bytes
        self._highest_bytes = max(self._highest_bytes, used_bytes)

    def held_by(self, processes: frozenset[ProcessId]) -> int | None:
        """What these processes, all that are on the GPU now, held at most since the last list; None: never read.

        When the set of processes has changed in between, only the latest reading is surely theirs.
        """
        if self.latest_bytes is None:
            return None
        self.highest_before_bytes = self._highest_bytes
        held = self._highest_bytes if processes == self._processes else self.latest_bytes
        self._processes, self._highest_bytes = processes, self.latest_bytes
        return held
