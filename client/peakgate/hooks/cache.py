"""What was found a moment ago, so that a burst of equal submissions is judged once."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Value = TypeVar("Value")


@dataclass(slots=True)
class Cache(Generic[Value]):
    """At most `entries`, the least used leave first; none is older than `seconds`."""

    entries: int = 1024
    seconds: float = 60.0
    clock: Callable[[], float] = time.monotonic
    _kept: OrderedDict[Hashable, tuple[float, Value]] = field(default_factory=OrderedDict)

    def get(self, key: Hashable) -> Value | None:
        """What is kept under a key; None when nothing is, or it is too old."""
        found = self._kept.get(key)
        if found is None:
            return None
        if self.clock() - found[0] > self.seconds:
            del self._kept[key]
            return None
        self._kept.move_to_end(key)
        return found[1]

    def put(self, key: Hashable, value: Value) -> None:
        """Keeps a value."""
        self._kept[key] = (self.clock(), value)
        self._kept.move_to_end(key)
        while len(self._kept) > self.entries:
            self._kept.popitem(last=False)
