"""The spool as it lies on the disk, without touching it: also while an agent writes it."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from peakgate.agent import spool_sql as sql
from peakgate.agent.errors import UsageError
from peakgate.agent.peaks import JobEvent, PeakRow


class SpoolView:
    """Read only. Raises UsageError for a file that is no spool of this version."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
            found = self._connection.execute("PRAGMA user_version").fetchone()[0]
        except sqlite3.Error as error:
            raise self._unreadable(error) from error
        self._connection.row_factory = sqlite3.Row
        if found != sql.SCHEMA_VERSION:
            self._connection.close()
            raise UsageError(f"{path} is of version {found} of the spool, and this command reads version {sql.SCHEMA_VERSION}")

    def rows(self) -> list[PeakRow]:
        """The rows that wait, oldest change first."""
        return [sql.row_of(row) for row in self._read("SELECT * FROM peaks ORDER BY version")]

    def events(self) -> list[JobEvent]:
        """The ends of jobs that wait."""
        return [sql.event_of(row) for row in self._read(sql.SELECT_EVENTS)]

    def close(self) -> None:
        """Closes the file."""
        self._connection.close()

    def _read(self, statement: str) -> list[sqlite3.Row]:
        try:
            return self._connection.execute(statement).fetchall()
        except sqlite3.Error as error:
            raise self._unreadable(error) from error

    def _unreadable(self, error: sqlite3.Error) -> UsageError:
        remedy = "Name the agent's with --spool, as a user that may read it"
        return UsageError(f"the spool {self._path} cannot be read: {error}", remedy=remedy)
