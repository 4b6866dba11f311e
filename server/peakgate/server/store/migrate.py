"""Brings a database to the tables of this version with Alembic; the migrations are packaged beside this file."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine

from peakgate.server.errors import PeakgateError
from peakgate.server.store.engine import open_engine
from peakgate.server.store.postgresql import LOCK_SECONDS, Lock, limit_waits, take
from peakgate.server.store.session import Sessions

STATEMENT_SECONDS = 600.0
"""Of a migration's longest statement: an index on a table of some ten million rows takes minutes. On SQLite, of all of them."""

OPERATIONS_BETWEEN_LOOKS = 100_000
"""Of SQLite's virtual machine, between two looks at the clock: some milliseconds."""


def configuration() -> Config:
    """Alembic's configuration: the folder of migrations."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    return config


def upgrade(url: str) -> str:
    """Upgrades the database at `url` and returns its revision. Raises STORE_UNAVAILABLE."""
    engine = open_engine(url)
    try:
        return upgrade_engine(engine)
    finally:
        engine.dispose()


def upgrade_engine(engine: Engine, *, lock_seconds: float = LOCK_SECONDS, statement_seconds: float = STATEMENT_SECONDS) -> str:
    """Upgrades in one transaction: a database is never left between two versions. Returns its revision.

    Raises STORE_UNAVAILABLE, with nothing changed, when a table stays in use for longer than `lock_seconds` or a statement takes
    longer than `statement_seconds`. Replicas that start together take turns: the later ones wait for the first and find it done.
    """
    config = configuration()
    head = ScriptDirectory.from_config(config).get_current_head() or ""
    sessions = Sessions(engine)
    with sessions.reading() as connection:
        if revision(connection) == head:
            return head
    with _explained(), sessions.writing() as connection, _limited(connection, lock_seconds, statement_seconds):
        _refuse_newer(connection, config)
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
        return revision(connection)


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except PeakgateError as error:
        if error.reason != "STORE_UNAVAILABLE" or error.message.startswith("database: "):
            raise
        remedy = "stop the servers and other programs that use it, then run `peakgate db upgrade`"
        words = f"database: it could not be brought to this version and nothing was changed ({error.message}); {remedy}"
        raise PeakgateError("STORE_UNAVAILABLE", words, hint=remedy) from error


@contextmanager
def _limited(connection: Connection, lock_seconds: float, statement_seconds: float) -> Iterator[None]:
    """Waits for whoever migrates at this moment, then limits what the migration itself waits for."""
    if connection.dialect.name == "postgresql":
        limit_waits(connection, lock_seconds=statement_seconds, statement_seconds=statement_seconds)
        take(connection, Lock.MIGRATION)
        limit_waits(connection, lock_seconds=lock_seconds, statement_seconds=statement_seconds)
        yield
        return
    driver = connection.connection.driver_connection
    assert driver is not None  # noqa: S101 - it is connected: SQLite's lock is held already, waited for as long as by any writer
    end = time.monotonic() + statement_seconds
    driver.set_progress_handler(lambda: time.monotonic() > end, OPERATIONS_BETWEEN_LOOKS)
    try:
        yield
    finally:
        driver.set_progress_handler(None, 0)


def revision(connection: Connection) -> str:
    """The revision of a database; empty for a new one."""
    return MigrationContext.configure(connection).get_current_revision() or ""


def _refuse_newer(connection: Connection, config: Config) -> None:
    found = revision(connection)
    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    if found and found not in known:
        words = f"database: it was made by a newer version (revision {found}); install that version or a newer one"
        raise PeakgateError("STORE_UNAVAILABLE", words)
