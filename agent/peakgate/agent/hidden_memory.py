"""Memory of a GPU that no listed process holds, such as managed memory: it grows with the job and is missing from the job's figure.

60 GB by cudaMallocManaged show as 5 GB of the process while the device is full (gpuopenanalytics/pynvml, issue 63).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

HIDDEN_BYTES = 1 << 30
"""More than CUDA contexts and a display's buffers make between a list and a reading of the device."""
SURE_AFTER_LISTS = 3
"""The device and its list are not read at the same instant; a difference that stays is none of timing."""


@dataclass(slots=True)
class HiddenMemory:
    """Of one GPU. What was hidden when the GPU was last empty, or at the least since, belongs to no job of now."""

    hidden_bytes: int = 0
    """What the device held at the last list beyond its processes."""
    _least_bytes: int | None = None
    _lists: int = 0

    def see(self, *, device_bytes: int | None, used: Iterable[int | None]) -> None:
        """Takes a process list and the latest reading of the device."""
        figures = list(used)
        known = [figure for figure in figures if figure is not None]
        if device_bytes is None or len(known) < len(figures):
            return
        self.hidden_bytes = max(0, device_bytes - sum(known))
        if not figures or self._least_bytes is None:
            self._least_bytes = self.hidden_bytes
        self._least_bytes = min(self._least_bytes, self.hidden_bytes)
        self._lists = self._lists + 1 if self.hidden_bytes - self._least_bytes > HIDDEN_BYTES else 0

    @property
    def is_growing(self) -> bool:
        """Whether what runs now holds memory that its processes do not show."""
        return self._lists >= SURE_AFTER_LISTS
