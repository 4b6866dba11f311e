"""One server a SQLite file: a second one would not see the calibration and the requests that the first one holds in memory."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from peakgate.server.errors import PeakgateError
from peakgate.server.store.engine import sqlite_file


@contextmanager
def only_server(url: str) -> Iterator[None]:
    """Holds an advisory lock beside the SQLite file of `url` (flock(2): it ends with the process); nothing for another database.

    Raises STORE_UNAVAILABLE when another server holds it, or when the place cannot be used.
    """
    file = sqlite_file(url)
    if file is None:
        yield
        return
    lock = file.with_name(f"{file.name}.lock")
    try:
        handle = lock.open("a")
    except OSError as error:
        raise PeakgateError("STORE_UNAVAILABLE", f"database: {lock} cannot be written: {error.strerror}", hint="choose another") from error
    with handle:
        _lock(handle.fileno(), file)
        yield


def _lock(descriptor: int, file: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        remedy = "stop that one, name another file with --db, or use PostgreSQL, which takes several servers"
        raise PeakgateError("STORE_UNAVAILABLE", f"database: another server uses {file}; {remedy}", hint=remedy) from error
