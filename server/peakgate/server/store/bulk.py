"""Many rows merged into one table at once, by what each database does fastest.

SQLite: one statement run for all rows inside the driver. PostgreSQL: COPY into a table that ends with the transaction, then one
INSERT … SELECT … ON CONFLICT, which took a third of the time of unnested arrays and a tenth of that of one statement a row
(tests/bench/ingest.py keeps the ratio to a plain COPY). Both pass PgBouncer in transaction mode.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, cast

from sqlalchemy import ColumnClause, ColumnElement, Connection, Dialect, Table, column, select
from sqlalchemy import table as any_table
from sqlalchemy.dialects import postgresql, sqlite

if TYPE_CHECKING:
    import psycopg

Insert = postgresql.Insert | sqlite.Insert
Values = tuple[object, ...]


class Bulk:
    """Rows of a table, as values in the order of its columns, each key once and in the order of the keys.

    `merged` says what becomes of the other columns when the key is there. The order keeps replicas from waiting for each other: what
    was copied is read again in the order in which it came (PostgreSQL shares scans only of tables that are not temporary: heapam.c,
    initscan).
    """

    def __init__(self, table: Table, key: Sequence[str], merged: Callable[[Insert], Mapping[str, ColumnElement[object]]]) -> None:
        self._table = table
        self._key = list(key)
        self._merged = merged
        self._columns = [each.name for each in table.columns]
        self._arriving = f"arriving_{table.name}"

    def merge(self, connection: Connection, rows: Sequence[Values]) -> None:
        """Merges rows into the table. Raises what the driver raises."""
        if not rows:
            return
        if connection.dialect.name == "postgresql":
            self._copy(connection, rows)
            connection.exec_driver_sql(self._from_arriving)
        else:
            connection.exec_driver_sql(self._from_values, list(rows))

    def _copy(self, connection: Connection, rows: Sequence[Values]) -> None:
        connection.exec_driver_sql(f"CREATE TEMPORARY TABLE {self._arriving} (LIKE {self._table.name}) ON COMMIT DROP")
        words = f"COPY {self._arriving} ({', '.join(self._columns)}) FROM STDIN".encode()
        driver = cast("psycopg.Connection", connection.connection.driver_connection)
        with driver.cursor() as cursor, cursor.copy(words) as copy:
            for row in rows:
                copy.write_row(row)

    @cached_property
    def _from_values(self) -> str:
        return str(self._on_conflict(sqlite.insert(self._table)).compile(dialect=sqlite.dialect()))

    @cached_property
    def _from_arriving(self) -> str:
        columns: list[ColumnClause[object]] = [column(name) for name in self._columns]
        chosen = select(*columns).select_from(any_table(self._arriving, *columns))
        statement = self._on_conflict(postgresql.insert(self._table).from_select(self._columns, chosen))
        dialect: Dialect = postgresql.dialect()  # type: ignore[no-untyped-call]  # SQLAlchemy leaves it untyped
        return str(statement.compile(dialect=dialect))

    def _on_conflict(self, statement: Insert) -> Insert:
        return statement.on_conflict_do_update(index_elements=self._key, set_=self._merged(statement))
