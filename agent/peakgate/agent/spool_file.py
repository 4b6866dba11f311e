"""The spool's file on the disk: one connection for all threads, and what becomes of a file that is damaged."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import structlog

from peakgate.agent import spool_sql as sql

PRIMARY_CODE = 0xFF
"""The lower byte of an extended result code (sqlite.org/rescode.html)."""
DAMAGE_CODES = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT})
"""A disk that is full or read-only is no damage: it would fail a new file as well."""

MAGIC = b"SQLite format 3\0"
"""What every database of SQLite begins with (sqlite.org/fileformat.html)."""

log = structlog.get_logger("peakgate.agent.spool")


class DamagedError(sqlite3.DatabaseError):
    """The file opens and is not what it should be."""

    sqlite_errorcode = sqlite3.SQLITE_CORRUPT


class SpoolFile:
    """Open from the start. Raises OSError or sqlite3.Error for a place that cannot be used.

    When the file itself is damaged it is put aside, a new one is begun, and the call that met the damage raises: it is made again.
    """

    def __init__(self, *, path: Path, wall: Callable[[], float]) -> None:
        self._lock = threading.RLock()
        self._path = path
        self._wall = wall
        self._connection = self._open()

    @contextmanager
    def using(self) -> Iterator[sqlite3.Connection]:
        """The connection, for one thread at a time."""
        with self._lock:
            try:
                yield self._connection
            except sqlite3.Error as error:
                if is_damage(error):
                    self._connection.close()
                    self._put_aside(error)
                    self._connection = _connect(self._path)
                raise

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """BEGIN IMMEDIATE … COMMIT, or ROLLBACK when the block raises."""
        with self.using() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def close(self) -> None:
        """Closes the file; what is in it stays."""
        with self._lock:
            self._connection.close()

    def _open(self) -> sqlite3.Connection:
        """The file of this version; a spool that is damaged or of another version is put aside: watching goes on matters more.

        Raises sqlite3.Error also for a file that was never a spool: a wrong name must not take a configuration or a database away.
        """
        self._path.parent.mkdir(parents=True, exist_ok=True)
        try:
            return _connect(self._path)
        except sqlite3.Error as error:
            if not is_damage(error):
                raise  # no permission, no space: nothing a new file would cure
            if is_foreign(self._path):
                raise sqlite3.DatabaseError("the file is another program's, and stays as it is") from error
            self._put_aside(error)
            return _connect(self._path)

    def _put_aside(self, error: sqlite3.Error) -> None:
        aside = self._path.with_name(f"{self._path.name}.damaged-{int(self._wall())}")
        self._path.rename(aside)
        for suffix in ("-wal", "-shm"):
            with suppress(FileNotFoundError):
                self._path.with_name(self._path.name + suffix).rename(aside.with_name(aside.name + suffix))
        log.error("spool damaged", put_aside=str(aside), problem=str(error))


def is_damage(error: sqlite3.Error) -> bool:
    """Whether the file is to blame, and not the place it lies in."""
    return getattr(error, "sqlite_errorcode", 0) & PRIMARY_CODE in DAMAGE_CODES


def is_foreign(path: Path) -> bool:
    """Whether it never was a spool: it begins unlike a database, or half of its tables are not a spool's. Zeros are a power cut's, and a
    few wrong bits are damage."""
    with path.open("rb") as file:
        beginning = file.read(len(MAGIC))
    if beginning.strip(b"\0") and sum(one != other for one, other in zip(beginning, MAGIC, strict=False)) > len(MAGIC) // 2:
        return True
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            found = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    except (sqlite3.Error, UnicodeDecodeError):
        return False  # too damaged to say
    own = {name for name in found if not name.startswith("sqlite_")}
    return bool(own) and len(own - sql.TABLES) >= len(own & sql.TABLES)


def _connect(path: Path) -> sqlite3.Connection:
    path.touch(mode=0o600)
    connection = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
    connection.row_factory = sqlite3.Row
    try:
        connection.create_function("merge_phases", 2, sql.merge_phases, deterministic=True)
        connection.create_function("checksum_of", -1, sql.checksum_of, deterministic=True)
        _check_version(connection)  # before anything is written
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.executescript(sql.SCHEMA)
        connection.execute(f"PRAGMA user_version = {sql.SCHEMA_VERSION}")
        _check_pages(connection)
    except UnicodeDecodeError as error:  # SQLite's message quotes the schema, of which a bit has flipped
        connection.close()
        raise DamagedError("its schema is no text") from error
    except sqlite3.Error as error:
        connection.close()
        if getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_ERROR:  # our own statements do not fit its tables
            raise DamagedError(str(error)) from error
        raise
    return connection


def _check_version(connection: sqlite3.Connection) -> None:
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version != sql.SCHEMA_VERSION and connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        raise DamagedError(f"it is of version {version}, and this agent writes version {sql.SCHEMA_VERSION}")


def _check_pages(connection: sqlite3.Connection) -> None:
    """Raises sqlite3.Error when the pages do not hang together or the tables are not ours."""
    found = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
    if found != "ok":
        raise DamagedError(str(found))
    for statement in (sql.NO_PEAKS, sql.SELECT_EVENTS, sql.SELECT_ALIVE, sql.LATEST):
        connection.execute(statement)
