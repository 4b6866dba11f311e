"""Keys that wait for a worker: each once, some only after a while, and those that fail after longer and longer."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Condition, Event

FIRST_SECONDS, MOST_SECONDS = 0.2, 60.0
TICK_SECONDS = 0.2


class WorkQueue:
    """Safe between threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._due: dict[str, float] = {}
        self._failures: dict[str, int] = {}
        self._changed = Condition()

    def __len__(self) -> int:
        return len(self._due)

    def add(self, key: str, seconds: float = 0.0) -> None:
        """The key is due after so long, or when it was due already, if that is earlier."""
        with self._changed:
            self._due[key] = min(self._due.get(key, float("inf")), self._clock() + seconds)
            self._changed.notify()

    def failed(self, key: str) -> None:
        """The key comes again, later each time."""
        count = self._failures.get(key, 0)
        self._failures[key] = count + 1
        self.add(key, min(FIRST_SECONDS * 2 ** min(count, 10), MOST_SECONDS))

    def forget(self, key: str) -> None:
        """The key is done with."""
        self._failures.pop(key, None)

    def get(self, stopped: Event) -> str | None:
        """The key that is due for longest; None when `stopped` is set first."""
        while not stopped.is_set():
            with self._changed:
                now = self._clock()
                key = min(self._due, key=self._due.__getitem__, default=None)
                if key is not None and self._due[key] <= now:
                    del self._due[key]
                    return key
                self._changed.wait(TICK_SECONDS if key is None else min(TICK_SECONDS, self._due[key] - now))
        return None
