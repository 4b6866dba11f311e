"""Leaves alone for a while what has failed several times in a row."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(slots=True)
class Breaker:
    """Opens after `failures` in a row, for `seconds`; then one call tries, and its failure opens it again."""

    failures: int = 3
    seconds: float = 5.0
    clock: Callable[[], float] = time.monotonic
    _failed: int = 0
    _until: float = 0.0

    @property
    def is_open(self) -> bool:
        """Whether nothing is to be tried now."""
        return self.clock() < self._until

    def succeeded(self) -> None:
        """Forgets failures."""
        self._failed = 0
        self._until = 0.0

    def failed(self) -> None:
        """Counts one; the last allowed one opens it."""
        self._failed += 1
        if self._failed >= self.failures:
            self._failed = self.failures - 1
            self._until = self.clock() + self.seconds
