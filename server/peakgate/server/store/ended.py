"""Attempts whose end somebody has seen and that were not learned from: a short list, so that nobody looks through all peaks for them."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import ColumnElement, Connection, and_, delete, exists, func, or_, select

from peakgate.server.store.records import EndedKey
from peakgate.server.store.session import insert_for
from peakgate.server.store.tables import ended_attempts, observations, predictions

MOST_NAMES = 5000
"""Predictions that one look takes, the oldest first. A statement has each as a parameter once (attempts.py), and SQLite takes 32,766
(sqlite.org/limits.html, SQLITE_MAX_VARIABLE_NUMBER)."""


def note(connection: Connection, attempts: Iterable[tuple[str, str, int]], *, seen_us: int) -> None:
    """Puts (prediction, job, restart) on the list, in the transaction that stores the end. One that is there was told again, if later."""
    values = [
        {"prediction": prediction, "job": job, "restart": restart, "seen_us": seen_us} for prediction, job, restart in sorted(set(attempts))
    ]
    if values:
        new = insert_for(connection, ended_attempts)
        later = new.excluded.seen_us > ended_attempts.c.seen_us
        key = list(ended_attempts.primary_key.columns)
        connection.execute(new.on_conflict_do_update(index_elements=key, set_={"seen_us": new.excluded.seen_us}, where=later), values)


def names(connection: Connection) -> list[str]:
    """The predictions of the attempts on the list that can be applied, the oldest first."""
    table = ended_attempts.c
    query = select(table.prediction).where(~_applied(), ~_unknown()).group_by(table.prediction)
    return list(connection.execute(query.order_by(func.min(table.seen_us), table.prediction).limit(MOST_NAMES)).scalars())


def newest(connection: Connection, limit: int) -> list[EndedKey]:
    """The attempts on the list whose end was told last, each with the moment."""
    table = ended_attempts.c
    query = select(table.prediction, table.job, table.restart, table.seen_us).order_by(table.seen_us.desc()).limit(limit)
    return [(row.prediction, row.job, row.restart, row.seen_us) for row in connection.execute(query)]


def strike(connection: Connection, prediction: str, job: str, restart: int) -> None:
    """Takes an attempt off the list, in the transaction that applies it."""
    table = ended_attempts.c
    connection.execute(delete(ended_attempts).where(table.prediction == prediction, table.job == job, table.restart == restart))


def forget(connection: Connection, before_us: int) -> None:
    """Takes off what was applied and came once more, and what nobody's prediction is and was noted before `before_us`."""
    old_and_unknown = and_(_unknown(), ended_attempts.c.seen_us < before_us)
    connection.execute(delete(ended_attempts).where(or_(_applied(), old_and_unknown)))


def _applied() -> ColumnElement[bool]:
    mine, theirs = ended_attempts.c, observations.c
    return exists().where(theirs.prediction == mine.prediction, theirs.job == mine.job, theirs.restart == mine.restart)


def _unknown() -> ColumnElement[bool]:
    return ~exists().where(predictions.c.prediction == ended_attempts.c.prediction)
