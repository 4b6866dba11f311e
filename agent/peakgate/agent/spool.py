"""What is not yet acknowledged, in one SQLite file. A row lives until the service has acknowledged it as it now stands.

Peaks merge into their row, so the file is bounded by the number of live keys and not by how long the service is away. Every change
gives a row a new version; an acknowledgement deletes it only at the version that was sent. Committed rows survive a kill at any
instruction (WAL); a power cut may take the last ones, which the next sample brings again.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import structlog

from peakgate.agent import spool_sql as sql
from peakgate.agent.peaks import JobEvent, PeakRow

MAX_ROWS = 50_000
"""About 15 MB: a node would need 50,000 processes under one outage to pass it."""

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


@dataclass(frozen=True, slots=True)
class SpooledPeak:
    """A row with the version at which it may be deleted."""

    id: int
    version: int
    row: PeakRow


class Spool:
    """The file. Any thread may call; each call is one transaction. Raises sqlite3.Error when the disk fails.

    When the file itself is damaged it is put aside, a new one is begun, and the call that met the damage raises: it is made again.
    """

    def __init__(self, *, path: Path, max_rows: int = MAX_ROWS, wall: Callable[[], float] = time.time) -> None:
        self._lock = threading.RLock()
        self._path = path
        self._wall = wall
        self._max_rows = max_rows
        self.dropped_rows = 0
        """Rows that gave way because the spool was full."""
        self.damaged_rows = 0
        """Rows whose checksum did not fit any more."""
        self._connection = self._open()

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

    @contextmanager
    def _using(self) -> Iterator[sqlite3.Connection]:
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
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """BEGIN IMMEDIATE … COMMIT, or ROLLBACK when the block raises."""
        with self._using() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def put(self, *, rows: Iterable[PeakRow], events: Iterable[JobEvent] = ()) -> None:
        """Merges the rows and adds the events; all or nothing."""
        values = [sql.values_of(row) for row in rows]
        with self._writing() as connection:
            first = _count_up(connection, "version", len(values)) - len(values) + 1
            connection.executemany(sql.MERGE, [(first + place, *value) for place, value in enumerate(values)])
            connection.execute(sql.SEAL, (first,))
            connection.executemany(sql.INSERT_EVENT, [sql.values_of_event(event) for event in events])
            self._keep_below_limit(connection)

    def latest_version(self) -> int:
        """The version of the newest change; a drain stops there, or new samples would keep it going for ever."""
        with self._using() as connection:
            found = connection.execute("SELECT value FROM counters WHERE name = 'version'").fetchone()
        return int(found[0]) if found else 0

    def batch(self, *, limit: int, up_to_version: int) -> list[SpooledPeak]:
        """The oldest changes, at most `limit`, all of one cluster and one boot (a message names only one)."""
        place = {"latest": up_to_version, "limit": limit}
        with self._writing() as connection:
            while damaged := connection.execute(sql.DELETE_DAMAGED, place).rowcount:
                self.damaged_rows += damaged
                log.error("spooled rows damaged", dropped=damaged)
            rows = connection.execute(sql.BATCH, place).fetchall()
        return [SpooledPeak(row["id"], row["version"], sql.row_of(row)) for row in rows]

    def acknowledge(self, peaks: Iterable[SpooledPeak]) -> None:
        """Deletes what the service has answered, unless it has changed since."""
        with self._writing() as connection:
            connection.executemany(sql.DELETE_PEAK, [(peak.id, peak.version) for peak in peaks])

    def events(self) -> list[JobEvent]:
        """The events that are not yet acknowledged, oldest first."""
        with self._using() as connection:
            return [sql.event_of(row) for row in connection.execute(sql.SELECT_EVENTS)]

    def acknowledge_event(self, event: JobEvent) -> None:
        """Deletes an event."""
        with self._writing() as connection:
            connection.execute(sql.DELETE_EVENT, sql.values_of_event(event)[:-1])

    def next_sequence(self, *, boot_id: str) -> int:
        """The number of the next batch of this boot, from 1."""
        with self._writing() as connection:
            return _count_up(connection, f"sequence {boot_id}", 1)

    def waiting(self) -> int:
        """Rows and events that are not yet acknowledged."""
        with self._using() as connection:
            return int(connection.execute(sql.WAITING).fetchone()[0])

    def oldest_time(self) -> float | None:
        """When the row that waits longest was last changed, in seconds since the epoch; None: none waits."""
        with self._lock:
            found = self._connection.execute("SELECT min(last_time) FROM peaks").fetchone()[0]
        return None if found is None else float(found)

    def close(self) -> None:
        """Closes the file; what is in it stays."""
        with self._lock:
            self._connection.close()

    def _keep_below_limit(self, connection: sqlite3.Connection) -> None:
        surplus = connection.execute("SELECT count(*) FROM peaks").fetchone()[0] - self._max_rows
        if surplus <= 0:
            return
        # The rows of single processes go first: a job's own row is what a prediction is compared with.
        connection.execute("DELETE FROM peaks WHERE id IN (SELECT id FROM peaks ORDER BY pid = 0, last_time LIMIT ?)", (surplus,))
        self.dropped_rows += surplus
        log.error("spool full", dropped=surplus, limit=self._max_rows)


def is_damage(error: sqlite3.Error) -> bool:
    """Whether the file is to blame, and not the place it lies in."""
    return getattr(error, "sqlite_errorcode", 0) & PRIMARY_CODE in DAMAGE_CODES


def is_foreign(path: Path) -> bool:
    """Whether it never was a spool: it has another beginning than a database, or tables that no spool has. Zeros are a power cut's."""
    with path.open("rb") as file:
        beginning = file.read(len(MAGIC))
    if beginning.strip(b"\0") and beginning != MAGIC:
        return True
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            found = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    except sqlite3.Error:
        return False  # too damaged to say
    return not {name for name in found if not name.startswith("sqlite_")} <= sql.TABLES


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
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _check_version(connection: sqlite3.Connection) -> None:
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version != sql.SCHEMA_VERSION and connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        raise DamagedError(f"it is of version {version}, and this agent writes version {sql.SCHEMA_VERSION}")


def _check_pages(connection: sqlite3.Connection) -> None:
    """Raises DamagedError when the pages do not hang together or the tables are not ours."""
    found = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
    if found != "ok":
        raise DamagedError(str(found))
    try:
        connection.execute(sql.BATCH, {"latest": 0, "limit": 0})
        connection.execute(sql.SELECT_EVENTS)
    except sqlite3.OperationalError as error:
        raise DamagedError(str(error)) from error


def _count_up(connection: sqlite3.Connection, name: str, by: int) -> int:
    return int(connection.execute(sql.COUNT_UP, (name, by)).fetchone()[0])
