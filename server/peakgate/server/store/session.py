"""Transactions, and the one place where a broken database becomes an error of the service."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from sqlalchemy import Connection, Engine, Table, event
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.pool import ConnectionPoolEntry

from peakgate.server.errors import PeakgateError
from peakgate.server.store.bulk import Insert

READING: dict[str, dict[str, object]] = {"postgresql": {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}}
"""What a reading transaction begins with, so that its statements see one state; SQLite's see one as they are."""


class Sessions:
    """Transactions on one engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._reader = engine.execution_options(**READING.get(engine.dialect.name, {}))
        self._writer = engine.execution_options(peakgate_writes=True)
        self._failures: tuple[type[Exception], ...] = (SQLAlchemyError, engine.dialect.loaded_dbapi.Error)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A consistent view. Raises STORE_UNAVAILABLE."""
        with self._translated(), self._reader.begin() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """One transaction, committed at the end. Raises STORE_UNAVAILABLE, and then nothing was written."""
        with self._translated(), self._writer.begin() as connection:
            yield connection

    def close(self) -> None:
        """Closes the pool, and each connection that a thread still holds when it gives it back."""
        event.listen(self._engine.pool, "checkin", _close)
        self._engine.dispose()

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Also what the driver raises where a cursor of its own is used."""
        try:
            yield
        except self._failures as error:
            cause = error.orig if isinstance(error, DBAPIError) else error
            raise PeakgateError("STORE_UNAVAILABLE", f"the database is away: {cause}", hint="try again") from error


def _close(connection: object, entry: ConnectionPoolEntry) -> None:
    if connection is not None:
        entry.close()


def insert_for(connection: Connection, table: Table) -> Insert:
    """An INSERT with ON CONFLICT, which SQLite and PostgreSQL spell alike."""
    return postgresql.insert(table) if connection.dialect.name == "postgresql" else sqlite.insert(table)


def insert_once(connection: Connection, table: Table, values: Mapping[str, object]) -> bool:
    """Inserts a row; False when its key is there already. (A driver's row count of an INSERT says this only on SQLite.)"""
    statement = insert_for(connection, table).on_conflict_do_nothing().returning(*table.primary_key.columns)
    return connection.execute(statement, values).first() is not None
