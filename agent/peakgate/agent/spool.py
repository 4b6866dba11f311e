"""What is not yet acknowledged, in one SQLite file. A row lives until the service has acknowledged it as it now stands.

Peaks merge into their row, so the file is bounded by the number of live keys and not by how long the service is away. Every change
gives a row a new version; an acknowledgement deletes it only at the version that was sent. Committed rows survive a kill at any
instruction (WAL); a power cut may take the last ones, which the next sample brings again.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import structlog

from peakgate.agent import spool_sql as sql
from peakgate.agent.peaks import JobEvent, PeakRow

MAX_ROWS = 50_000
"""About 15 MB: a node would need 50,000 processes under one outage to pass it."""

log = structlog.get_logger("peakgate.agent.spool")


@dataclass(frozen=True, slots=True)
class SpooledPeak:
    """A row with the version at which it may be deleted."""

    id: int
    version: int
    row: PeakRow


class Spool:
    """The file. Any thread may call; each call is one transaction. Raises sqlite3.Error when the disk fails."""

    def __init__(self, *, path: Path, max_rows: int = MAX_ROWS) -> None:
        self._lock = threading.Lock()
        self._max_rows = max_rows
        self.dropped_rows = 0
        """Rows that gave way because the spool was full."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)
        self._connection = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self._connection.row_factory = sqlite3.Row
        try:
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = NORMAL")
            self._connection.create_function("merge_phases", 2, sql.merge_phases, deterministic=True)
            self._make_tables()
        except sqlite3.Error:
            self._connection.close()
            raise

    def put(self, *, rows: Iterable[PeakRow], events: Iterable[JobEvent] = ()) -> None:
        """Merges the rows and adds the events; all or nothing."""
        values = [sql.values_of(row) for row in rows]
        with self._lock, self._transaction():
            last = self._count_up("version", len(values))
            first = last - len(values) + 1
            self._connection.executemany(sql.MERGE, [(first + place, *value) for place, value in enumerate(values)])
            self._connection.executemany(sql.INSERT_EVENT, [sql.values_of_event(event) for event in events])
            self._keep_below_limit()

    def latest_version(self) -> int:
        """The version of the newest change; a drain stops there, or new samples would keep it going for ever."""
        with self._lock:
            found = self._connection.execute("SELECT value FROM counters WHERE name = 'version'").fetchone()
        return int(found[0]) if found else 0

    def batch(self, *, limit: int, up_to_version: int) -> list[SpooledPeak]:
        """The oldest changes, at most `limit`, all of one cluster and one boot (a message names only one)."""
        with self._lock:
            rows = self._connection.execute(sql.BATCH, {"latest": up_to_version, "limit": limit}).fetchall()
        return [SpooledPeak(row["id"], row["version"], sql.row_of(row)) for row in rows]

    def acknowledge(self, peaks: Iterable[SpooledPeak]) -> None:
        """Deletes what the service has answered, unless it has changed since."""
        with self._lock, self._transaction():
            self._connection.executemany(sql.DELETE_PEAK, [(peak.id, peak.version) for peak in peaks])

    def events(self) -> list[JobEvent]:
        """The events that are not yet acknowledged, oldest first."""
        with self._lock:
            return [sql.event_of(row) for row in self._connection.execute(sql.SELECT_EVENTS)]

    def acknowledge_event(self, event: JobEvent) -> None:
        """Deletes an event."""
        with self._lock, self._transaction():
            self._connection.execute(sql.DELETE_EVENT, sql.values_of_event(event)[:-1])

    def next_sequence(self, *, boot_id: str) -> int:
        """The number of the next batch of this boot, from 1."""
        with self._lock, self._transaction():
            return self._count_up(f"sequence {boot_id}", 1)

    def waiting(self) -> int:
        """Rows and events that are not yet acknowledged."""
        with self._lock:
            return int(self._connection.execute(sql.WAITING).fetchone()[0])

    def close(self) -> None:
        """Closes the file; what is in it stays."""
        with self._lock:
            self._connection.close()

    def _make_tables(self) -> None:
        """The tables of this version; raises sqlite3.DatabaseError for a file of another."""
        found = self._connection.execute("PRAGMA user_version").fetchone()[0]
        if found != sql.SCHEMA_VERSION and self._connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            raise sqlite3.DatabaseError(f"the file is of version {found} of the spool, and this agent writes version {sql.SCHEMA_VERSION}")
        self._connection.executescript(sql.SCHEMA)
        self._connection.execute(f"PRAGMA user_version = {sql.SCHEMA_VERSION}")

    def _transaction(self) -> _Transaction:
        return _Transaction(self._connection)

    def _count_up(self, name: str, by: int) -> int:
        return int(self._connection.execute(sql.COUNT_UP, (name, by)).fetchone()[0])

    def _keep_below_limit(self) -> None:
        surplus = self._connection.execute("SELECT count(*) FROM peaks").fetchone()[0] - self._max_rows
        if surplus <= 0:
            return
        # The rows of single processes go first: a job's own row is what a prediction is compared with.
        self._connection.execute("DELETE FROM peaks WHERE id IN (SELECT id FROM peaks ORDER BY pid = 0, last_time LIMIT ?)", (surplus,))
        self.dropped_rows += surplus
        log.error("spool full", dropped=surplus, limit=self._max_rows)


class _Transaction:
    """BEGIN IMMEDIATE … COMMIT, or ROLLBACK when the block raises."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def __enter__(self) -> None:
        self._connection.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._connection.execute("COMMIT" if kind is None else "ROLLBACK")


def open_spool(path: Path, *, max_rows: int = MAX_ROWS, wall: Callable[[], float] = time.time) -> Spool:
    """The spool; a file that is damaged or of another version is put aside and a new one begun: watching goes on matters more."""
    try:
        return Spool(path=path, max_rows=max_rows)
    except sqlite3.OperationalError:
        raise  # no permission, no space: nothing a new file would cure
    except sqlite3.DatabaseError as error:
        aside = path.with_name(f"{path.name}.damaged-{int(wall())}")
        path.rename(aside)
        for suffix in ("-wal", "-shm"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
        log.exception("spool damaged", put_aside=str(aside), problem=str(error))
        return Spool(path=path, max_rows=max_rows)
