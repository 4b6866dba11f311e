"""What is not yet acknowledged, in one SQLite file. A row lives until the service has acknowledged it as it now stands.

Peaks merge into their row, so the file is bounded by the number of live keys and not by how long the service is away. Every change
gives a row a new version; an acknowledgement deletes it only at the version that was sent. Committed rows survive a kill at any
instruction (WAL); a power cut may take the last ones, which the next sample brings again.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import structlog

from peakgate.agent import spool_sql as sql
from peakgate.agent.peaks import JobEvent, PeakRow
from peakgate.agent.spool_file import SpoolFile

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
    """The rows. Any thread may call; each call is one transaction. Raises sqlite3.Error when the disk fails (see SpoolFile)."""

    def __init__(self, *, path: Path, max_rows: int = MAX_ROWS, wall: Callable[[], float] = time.time) -> None:
        self._file = SpoolFile(path=path, wall=wall)
        self._max_rows = max_rows
        self.dropped_rows = 0
        """Rows that gave way because the spool was full."""
        self.damaged_rows = 0
        """Rows whose checksum did not fit any more."""

    def put(self, *, rows: Iterable[PeakRow], events: Iterable[JobEvent] = ()) -> None:
        """Merges the rows and adds the events; all or nothing."""
        values = [sql.values_of(row) for row in rows]
        with self._file.writing() as connection:
            first = _count_up(connection, "version", len(values)) - len(values) + 1
            connection.executemany(sql.MERGE, [(first + place, *value) for place, value in enumerate(values)])
            for statement in (sql.SEAL, sql.KEEP_ALIVE, sql.FORGET_ENDED):
                connection.execute(statement, (first,))
            connection.executemany(sql.INSERT_EVENT, [sql.values_of_event(event) for event in events])
            self._keep_below_limit(connection)

    def latest_version(self) -> int:
        """The version of the newest change; a drain stops there, or new samples would keep it going for ever."""
        with self._file.using() as connection:
            found = connection.execute(sql.LATEST).fetchone()
        return int(found[0]) if found else 0

    def batch(self, *, limit: int, up_to_version: int) -> list[SpooledPeak]:
        """The oldest changes, at most `limit`, all of one cluster and one boot (a message names only one)."""
        place = {"latest": up_to_version, "limit": limit}
        with self._file.writing() as connection:
            while damaged := connection.execute(sql.DELETE_DAMAGED, place).rowcount:
                self.damaged_rows += damaged
                log.error("spooled rows damaged", dropped=damaged)
            rows = connection.execute(sql.BATCH, place).fetchall()
        return [SpooledPeak(row["id"], row["version"], sql.row_of(row)) for row in rows]

    def acknowledge(self, peaks: Iterable[SpooledPeak]) -> None:
        """Deletes what the service has answered, unless it has changed since."""
        with self._file.writing() as connection:
            connection.executemany(sql.DELETE_PEAK, [(peak.id, peak.version) for peak in peaks])

    def alive(self) -> list[PeakRow]:
        """The rows that have not ended, acknowledged or not, as they were last put."""
        with self._file.using() as connection:
            return [sql.row_of(row) for row in connection.execute(sql.SELECT_ALIVE)]

    def events(self) -> list[JobEvent]:
        """The events that are not yet acknowledged, oldest first."""
        with self._file.using() as connection:
            return [sql.event_of(row) for row in connection.execute(sql.SELECT_EVENTS)]

    def acknowledge_event(self, event: JobEvent) -> None:
        """Deletes an event."""
        with self._file.writing() as connection:
            connection.execute(sql.DELETE_EVENT, sql.values_of_event(event)[:-1])

    def next_sequence(self, *, boot_id: str) -> int:
        """The number of the next batch of this boot, from 1."""
        with self._file.writing() as connection:
            return _count_up(connection, f"sequence {boot_id}", 1)

    def waiting(self) -> int:
        """Rows and events that are not yet acknowledged."""
        with self._file.using() as connection:
            return int(connection.execute(sql.WAITING).fetchone()[0])

    def oldest_time(self) -> float | None:
        """When the row that waits longest was last changed, in seconds since the epoch; None: none waits."""
        with self._file.using() as connection:
            found = connection.execute(sql.OLDEST_TIME).fetchone()[0]
        return None if found is None else float(found)

    def close(self) -> None:
        """Closes the file; what is in it stays."""
        self._file.close()

    def _keep_below_limit(self, connection: sqlite3.Connection) -> None:
        surplus = connection.execute(sql.COUNT_PEAKS).fetchone()[0] - self._max_rows
        if surplus <= 0:
            return
        connection.execute(sql.DELETE_SURPLUS, (surplus,))
        self.dropped_rows += surplus
        log.error("spool full", dropped=surplus, limit=self._max_rows)


def _count_up(connection: sqlite3.Connection, name: str, by: int) -> int:
    return int(connection.execute(sql.COUNT_UP, (name, by)).fetchone()[0])
