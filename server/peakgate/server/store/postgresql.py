"""PostgreSQL by psycopg 3, directly or through PgBouncer in transaction mode: nothing that we set or hold outlives its transaction."""

from __future__ import annotations

from enum import IntEnum

from sqlalchemy import URL, Connection, Engine, create_engine, event, func, select

CONNECTIONS = 5
"""Kept open by one server: one for the writer of peaks, one for predictions, one for learning, the rest for readers."""

MORE_CONNECTIONS = 5
"""Opened beside them while they are all in use; so replicas × 10 must stay within the server's max_connections."""

CONNECTION_WAIT_SECONDS = 10.0
"""For a free connection of the pool, before the store counts as away."""

RECYCLE_SECONDS = 1800.0
"""Age at which a connection is replaced, so that a fail-over or a changed address is followed."""

CONNECT_OPTIONS: dict[str, object] = {
    "prepare_threshold": None,  # a prepared statement belongs to a connection of the server, which PgBouncer deals out anew each time
    "application_name": "peakgate",
    "connect_timeout": 5,  # seconds
    "tcp_user_timeout": 15_000,  # milliseconds until a server that no longer answers is noticed
}
"""What stays on our side of the wire (libpq), or is known to PgBouncer. It refuses `options`, hence the timeouts of `limit_waits`."""

LOCK_SECONDS = 5.0
"""Wait for a lock that another transaction holds. Ours last milliseconds; who holds one for longer is a person or a migration."""

STATEMENT_SECONDS = 30.0
"""Of one statement; the slowest of ours are the deletions of retention."""

IDLE_SECONDS = 15.0
"""Of our side within a transaction: a server that was stopped in the midst of one (a paused container) must not keep its locks for good."""


class Lock(IntEnum):
    """Keys of advisory locks that end with their transaction ("peak" in ASCII, and a number)."""

    MIGRATION = 0x7065616B00
    CALIBRATION = 0x7065616B01
    JOBS = 0x7065616B02
    TRIES = 0x7065616B04


def open_postgresql(url: URL) -> Engine:
    """An engine whose every transaction has limits on what it waits for. Raises ModuleNotFoundError without psycopg."""
    engine = create_engine(
        url.set(drivername="postgresql+psycopg"),
        connect_args=CONNECT_OPTIONS,
        pool_pre_ping=True,
        pool_size=CONNECTIONS,
        max_overflow=MORE_CONNECTIONS,
        pool_timeout=CONNECTION_WAIT_SECONDS,
        pool_recycle=RECYCLE_SECONDS,
        pool_use_lifo=True,
    )
    event.listen(engine, "begin", limit_waits)
    return engine


def limit_waits(
    connection: Connection,
    lock_seconds: float = LOCK_SECONDS,
    statement_seconds: float = STATEMENT_SECONDS,
    idle_seconds: float = IDLE_SECONDS,
) -> None:
    """Limits what the current transaction waits for; SET LOCAL ends with it, and all go in one message."""
    limits = {"lock": lock_seconds, "statement": statement_seconds, "idle_in_transaction_session": idle_seconds}
    connection.exec_driver_sql("; ".join(f"SET LOCAL {name}_timeout = {seconds * 1000:.0f}" for name, seconds in limits.items()))


def take(connection: Connection, lock: Lock, *, shared: bool = False) -> None:
    """Takes a lock until the transaction ends. On SQLite nothing: whoever writes there is alone."""
    if connection.dialect.name == "postgresql":
        function = func.pg_advisory_xact_lock_shared if shared else func.pg_advisory_xact_lock
        connection.execute(select(function(lock.value)))
