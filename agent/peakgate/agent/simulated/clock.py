"""The scenario's clock for several processes: a file of eight bytes that the library maps (clock.c)."""

from __future__ import annotations

import mmap
import struct
from pathlib import Path

CLOCK_VARIABLE = "PEAKGATE_SIMULATED_NVML_CLOCK"
"""Names the file in the environment of a program that runs on the library."""


class SharedClock:
    """Its writer. Programs whose environment has `environment` see each change at once."""

    def __init__(self, path: Path, seconds: float = 0.0) -> None:
        path.write_bytes(struct.pack("d", seconds))
        with path.open("r+b") as file:
            self._seconds = memoryview(mmap.mmap(file.fileno(), struct.calcsize("d"))).cast("d")
        self.environment = {CLOCK_VARIABLE: str(path)}

    def set_time(self, seconds: float) -> None:
        """Stands the clock at `seconds`; a negative value lets real time run in each program."""
        self._seconds[0] = seconds
