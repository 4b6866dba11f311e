"""The databases that the store's tests run on, each with a way to look into it past the store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from alembic import command
from sqlalchemy import Connection, create_engine, make_url, text
from sqlalchemy.pool import NullPool

from peakgate.server.store.engine import open_engine
from peakgate.server.store.migrate import configuration
from peakgate.server.store.session import Sessions

KINDS = ("sqlite", "postgresql")


@dataclass(frozen=True, slots=True)
class Database:
    """A database of one test."""

    url: str

    @property
    def kind(self) -> str:
        """sqlite or postgresql."""
        return make_url(self.url).get_backend_name()

    @contextmanager
    def connected(self) -> Iterator[Connection]:
        """A connection of its own; what was done is committed at the end."""
        parsed = make_url(self.url)
        engine = create_engine(parsed.set(drivername="postgresql+psycopg") if self.kind == "postgresql" else parsed, poolclass=NullPool)
        with engine.begin() as connection:
            yield connection
        engine.dispose()

    def rows(self, query: str) -> list[tuple[object, ...]]:
        """What a query finds."""
        with self.connected() as connection:
            return [tuple(row) for row in connection.execute(text(query))]

    def run(self, *statements: str) -> None:
        """Runs statements in one transaction."""
        with self.connected() as connection:
            for statement in statements:
                connection.execute(text(statement))

    def run_script(self, script: str) -> None:
        """Runs a script of PostgreSQL in one transaction."""
        with self.connected() as connection:
            connection.exec_driver_sql(script.replace("%", "%%"), ())

    def upgrade_to(self, revision: str) -> None:
        """Makes the tables of an earlier version."""
        engine = open_engine(self.url)
        with Sessions(engine).writing() as connection:
            config = configuration()
            config.attributes["connection"] = connection
            command.upgrade(config, revision)
        engine.dispose()

    def count(self, table: str) -> int:
        """How many rows a table has."""
        ((found,),) = self.rows(f"SELECT count(*) FROM {table}")
        assert isinstance(found, int)
        return found


NewDatabase = Callable[[str], Database]
"""Makes an empty database of the given name, or gives the one that was made under it before."""


def sqlite_in(folder: Path) -> NewDatabase:
    """SQLite files of a folder."""
    return lambda name: Database(f"sqlite:///{folder / name}.sqlite3")
