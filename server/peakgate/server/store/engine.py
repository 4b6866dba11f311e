"""Engines: SQLite with a write-ahead log on a local disk, or PostgreSQL. Refuses what would lose data."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError
from sqlalchemy.pool import ConnectionPoolEntry

from peakgate.server.errors import PeakgateError
from peakgate.server.store.postgresql import open_postgresql

NETWORK_FILE_SYSTEMS = frozenset(
    {
        "nfs",
        "nfs4",
        "cifs",
        "smb",
        "smb3",
        "smbfs",
        "afs",
        "ceph",
        "fuse.ceph",
        "fuse.sshfs",
        "fuse.glusterfs",
        "glusterfs",
        "lustre",
        "gpfs",
        "beegfs",
        "wekafs",
        "pvfs2",
        "orangefs",
        "fuse.s3fs",
        "fuse.juicefs",
        "fuse.gcsfuse",
    }
)
"""Types in /proc/mounts. SQLite's write-ahead log needs shared memory, which no network file system has (sqlite.org/wal.html §1)."""

BUSY_SECONDS = 10.0
"""Wait for another writer of the same file before the store counts as away."""


def open_engine(url: str, *, mounts: str | None = None) -> Engine:
    """An engine for `url`. `mounts` is the text of /proc/mounts; None: read it.

    Raises STORE_UNAVAILABLE, with what to do, for a URL that cannot be used.
    """
    file = sqlite_file(url, mounts=mounts)
    if file is not None:
        return _open_sqlite(file)
    parsed = make_url(url)
    if parsed.get_backend_name() not in ("postgresql", "postgres"):
        raise _unusable(f"{parsed.get_backend_name()} is not supported", "use SQLite or PostgreSQL")
    try:
        return open_postgresql(parsed)
    except ModuleNotFoundError as error:
        raise _unusable(f"PostgreSQL needs the Python package {error.name}", "pip install 'peakgate[postgresql]'") from error


def sqlite_file(url: str, *, mounts: str | None = None) -> Path | None:
    """The file of a SQLite URL, its folder made; None for another database. Raises STORE_UNAVAILABLE for a place that loses data."""
    try:
        parsed = make_url(url)
    except ArgumentError as error:
        raise _unusable(f"{url!r} is no database URL", "use sqlite:////path/to/file or postgresql://user@host/name") from error
    return _sqlite_path(url, parsed.database or "", mounts) if parsed.get_backend_name() == "sqlite" else None


def _sqlite_path(url: str, database: str, mounts: str | None) -> Path:
    if database in ("", ":memory:") or database.startswith("file:"):
        raise _unusable(f"{url} names no file, so nothing would be kept", "use sqlite:////path/to/file")
    path = Path(database).absolute()
    refuse_network_file_system(path, _mounts() if mounts is None else mounts)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unusable(f"the folder {path.parent} cannot be made: {error.strerror}", "choose a folder you may write to") from error
    return path


def _open_sqlite(path: Path) -> Engine:
    engine = create_engine(f"sqlite:///{path}", connect_args={"timeout": BUSY_SECONDS, "check_same_thread": False})
    event.listen(engine, "connect", _configure_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _mounts() -> str:
    """The mount table of Linux; empty elsewhere, where nothing is refused."""
    table = Path("/proc/mounts")
    return table.read_text() if table.exists() else ""


def refuse_network_file_system(path: Path, mounts: str) -> None:
    """Raises STORE_UNAVAILABLE when `path` lies on a network file system, by the mount that holds it."""
    rows = [line.split() for line in mounts.splitlines()]
    points = [(Path(row[1].replace("\\040", " ")), row[2]) for row in rows if len(row) > 2]
    existing = next((each for each in (path, *path.parents) if each.exists()), path).resolve()
    holding = [(point, kind) for point, kind in points if existing == point or point in existing.parents]
    if not holding:
        return
    point, kind = max(holding, key=lambda each: len(each[0].parts))
    if kind in NETWORK_FILE_SYSTEMS:
        raise _unusable(
            f"{path} lies on a network file system ({kind} at {point}), where SQLite loses data",
            "put the file on a local disk, or use PostgreSQL",
        )


def _configure_sqlite(connection: Any, _record: ConnectionPoolEntry) -> None:
    """Write-ahead log; every commit reaches the disk before it is acknowledged; transactions are begun by us."""
    connection.isolation_level = None
    with closing(connection.cursor()) as cursor:
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
            cursor.execute(f"PRAGMA {pragma}")


def _begin_sqlite(connection: Connection) -> None:
    """A writer takes the lock at once: one that reads first and writes later could not be made to wait."""
    immediate = connection.get_execution_options().get("peakgate_writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")


def _unusable(message: str, hint: str) -> PeakgateError:
    return PeakgateError("STORE_UNAVAILABLE", f"database: {message}; {hint}", hint=hint)
