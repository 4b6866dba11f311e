"""Keeps the agent's hands off NVML for a while: an open session blocks a GPU reset, a page retirement and the unloading of the driver."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class Hold:
    """Asked for by one thread, kept by the one that owns NVML. It ends by itself, so that a forgotten one does not blind the agent."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._until = float("-inf")
        self._free = threading.Event()
        self._free.set()

    @property
    def is_on(self) -> bool:
        """Whether NVML is to be left alone now."""
        return self._clock() < self._until

    def begin(self, seconds: float) -> None:
        """From now for this long."""
        self._until = self._clock() + seconds

    def end(self) -> None:
        """NVML may be opened again."""
        self._until = float("-inf")

    def wait_free(self, timeout_seconds: float) -> bool:
        """Waits until NVML is not open; whether it came to that."""
        return self._free.wait(timeout_seconds)

    def may_take(self) -> bool:
        """The owner of NVML is about to open it; False: it must not. Whoever begins a hold afterwards waits until it has left."""
        self._free.clear()
        if self.is_on:
            self._free.set()
            return False
        return True

    def left(self) -> None:
        """The owner has closed NVML."""
        self._free.set()
