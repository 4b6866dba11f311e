"""Deletes peaks and events that have been made use of, a small batch at a time; the observation of an attempt stays for good.

Rows are found by an index of their first moment, which does not change while a job runs, and deleted by their key: a batch is a
transaction of a few milliseconds, between which agents are served.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlalchemy import ColumnElement, Connection, Row, Select, Table, and_, bindparam, delete, exists, or_, select

from peakgate.server.store.events import EVENT_KEY
from peakgate.server.store.tables import PEAK_KEY, PROCESS_KEY, job_events, observations, peaks, phase_peaks, predictions


def forget_peaks(connection: Connection, before_us: int, *, limit: int) -> int:
    """Deletes at most `limit` rows to which nothing was added since `before_us`, with their phases. Returns how many rows."""
    rows = connection.execute(old_peaks(before_us, limit=limit)).all()
    _delete(connection, peaks, PEAK_KEY, rows)
    _delete(connection, phase_peaks, PROCESS_KEY, {row[: len(PROCESS_KEY)] for row in rows})
    return len(rows)


def forget_events(connection: Connection, before_us: int, *, limit: int) -> int:
    """Deletes at most `limit` events from before `before_us`. Returns how many."""
    rows = connection.execute(old_events(before_us, limit=limit)).all()
    _delete(connection, job_events, EVENT_KEY, rows)
    return len(rows)


def old_peaks(before_us: int, *, limit: int) -> Select[tuple[object, ...]]:
    """Keys of peaks that may go, the oldest first."""
    old = and_(peaks.c.first_us < before_us, peaks.c.last_us < before_us, _is_done_with(peaks))
    return select(*(peaks.c[name] for name in PEAK_KEY)).where(old).order_by(peaks.c.first_us).limit(limit)


def old_events(before_us: int, *, limit: int) -> Select[tuple[object, ...]]:
    """Keys of events that may go, the oldest first."""
    old = and_(job_events.c.event_us < before_us, _is_done_with(job_events))
    return select(*(job_events.c[name] for name in EVENT_KEY)).where(old).order_by(job_events.c.event_us).limit(limit)


def _is_done_with(table: Table) -> ColumnElement[bool]:
    """Its attempt has an observation, or it can never have one: nobody knows its prediction."""
    mine, theirs = table.c, observations.c
    same_attempt = (theirs.prediction == mine.prediction, theirs.job == mine.job, theirs.restart == mine.restart)
    return or_(exists().where(*same_attempt), ~exists().where(predictions.c.prediction == mine.prediction))


def _delete(connection: Connection, table: Table, key: Sequence[str], rows: Iterable[Row[tuple[object, ...]] | tuple[object, ...]]) -> None:
    values = [{f"key_{name}": value for name, value in zip(key, row, strict=True)} for row in rows]
    if values:
        connection.execute(delete(table).where(*(table.c[name] == bindparam(f"key_{name}") for name in key)), values)
