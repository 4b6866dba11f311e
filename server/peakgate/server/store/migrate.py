"""Brings a database to the tables of this version with Alembic; the migrations are packaged beside this file."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, text

from peakgate.server.errors import PeakgateError
from peakgate.server.store.engine import open_engine
from peakgate.server.store.session import Sessions

LOCK = 0x7065616B
"""Of PostgreSQL's advisory lock during a migration ("peak" in ASCII): replicas that start together take turns."""


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


def upgrade_engine(engine: Engine) -> str:
    """Upgrades in one transaction: a database is never left between two versions. Returns its revision."""
    config = configuration()
    head = ScriptDirectory.from_config(config).get_current_head() or ""
    with Sessions(engine).reading() as connection:
        if revision(connection) == head:
            return head
    with Sessions(engine).writing() as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": LOCK})
        _refuse_newer(connection, config)
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
        return revision(connection)


def revision(connection: Connection) -> str:
    """The revision of a database; empty for a new one."""
    return MigrationContext.configure(connection).get_current_revision() or ""


def _refuse_newer(connection: Connection, config: Config) -> None:
    found = revision(connection)
    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    if found and found not in known:
        words = f"database: it was made by a newer version (revision {found}); install that version or a newer one"
        raise PeakgateError("STORE_UNAVAILABLE", words)
