"""An operators' file, read again whenever it changes; one that is broken leaves the last good one in force, and is said so."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

Content = TypeVar("Content")
Stamp = tuple[int, int, int]


class LiveFile(Generic[Content]):
    """`current` looks at the file's times at every call, which costs microseconds, and says through `tell` what became of a change."""

    def __init__(
        self,
        path: Path,
        read: Callable[[Path], Content],
        tell: Callable[[str, str], None],
        *,
        fault: type[Exception],
        without: Content | None = None,
    ) -> None:
        """Reads the file. Raises `fault`, as `read` does: a gate begins with files that are whole. `without`: what holds while there is no
        file, where one need not be."""
        self._path, self._read, self._tell, self._fault = path, read, tell, fault
        self._without = without
        self._stamp = self._look()
        self._content = without if self._stamp is None and without is not None else read(path)
        self.is_stale = False
        """Whether the file has a fault, so that what it said before is in force."""

    def current(self) -> Content:
        """What is in force."""
        if (stamp := self._look()) == self._stamp:
            return self._content
        self._stamp = stamp
        if stamp is None and self._without is not None:
            self._content, self.is_stale = self._without, False
            return self._content
        try:
            self._content = self._read(self._path)
            self.is_stale = False
            self._tell("info", f"{self._path} was read again")
        except self._fault as error:
            self.is_stale = True
            self._tell("error", f"{error}; what it said before stays in force")
        return self._content

    def _look(self) -> Stamp | None:
        try:
            found = os.stat(self._path)  # noqa: PTH116 - the same, at half the cost
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino
