"""A small file that somebody else writes, read again when it has changed."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from typing import Generic, TypeVar

import structlog

MAX_FILE_BYTES = 64 << 10
"""A drop-in file is a line or two."""
T = TypeVar("T")

log = structlog.get_logger("peakgate.agent.watched_file")


class WatchedFile(Generic[T]):
    """What `parse` makes of the text, None while there is no such file. One that it refuses by ValueError is logged once and absent.

    So is one that is nested too deep, and what is no regular file.
    """

    def __init__(self, path: str, parse: Callable[[str], T]) -> None:
        self._path = path
        self._parse = parse
        self._state: tuple[int, int, int] | None = None
        self._value: T | None = None

    def value(self) -> T | None:
        """The content as it is now; costs one stat while nothing changes."""
        try:
            status = os.stat(self._path)  # noqa: PTH116 (runs for every GPU every second; pathlib costs three times as much)
        except OSError:
            self._state = self._value = None
            return None
        state = (status.st_mtime_ns, status.st_size, status.st_ino)
        if state != self._state:
            self._state, self._value = state, self._read(status.st_mode)
        return self._value

    def _read(self, mode: int) -> T | None:
        try:
            if not stat.S_ISREG(mode):
                raise ValueError("it is no regular file")  # noqa: TRY301 (a pipe would hold up the watch until somebody writes)
            with open(self._path, encoding="utf-8") as file:  # noqa: PTH123 (the path is text already)
                return self._parse(file.read(MAX_FILE_BYTES))
        except (OSError, ValueError, RecursionError) as error:
            log.warning("job file not understood", file=self._path, problem=str(error))
            return None
