"""Job events, and the attempts of which events or peaks have seen the end."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, fields

from sqlalchemy import ColumnElement, Connection, Row, and_, exists, func, or_, select

from peakgate.server.store import ended
from peakgate.server.store import predictions as prediction_rows
from peakgate.server.store.records import TERMINAL_EVENTS, Attempt, EventRow, PeakRow
from peakgate.server.store.session import insert_once
from peakgate.server.store.tables import job_events, observations, peaks, predictions


def add_event(connection: Connection, event: EventRow) -> None:
    """Stores a job event; a repeated one changes nothing."""
    if event.prediction and event.event in TERMINAL_EVENTS:
        ended.note(connection, [(event.prediction, event.job, event.restart)], seen_us=event.event_us)
    if insert_once(connection, job_events, asdict(event)) and event.prediction:
        prediction_rows.bind(connection, [event.prediction], state="running" if event.event == "started" else event.event)


def due(connection: Connection, *, names: Collection[str] | None, settled_before_us: int) -> list[Attempt]:
    """Attempts whose end was seen and that were not learned from, oldest end first. `names`: only of these predictions.

    The end is a terminal event, or every GPU's row having ended; a GPU that says nothing more after the others have ended
    is waited for until `settled_before_us`.
    """
    if names is None:
        names = ended.names(connection)
    keys = {*_ended_by_event(connection, names), *_ended_by_rows(connection, names, settled_before_us)}
    attempts = [_attempt(connection, *key) for key in keys]
    return sorted(attempts, key=lambda each: (each.finished_us, each.prediction, each.job, each.restart))


def _ended_by_event(connection: Connection, names: Collection[str]) -> list[tuple[str, str, int]]:
    table = job_events.c
    query = select(table.prediction, table.job, table.restart).where(
        table.event.in_(TERMINAL_EVENTS), _known(table.prediction, names), ~_learned(table.prediction, table.job, table.restart)
    )
    return [(row.prediction, row.job, row.restart) for row in connection.execute(query)]


def _ended_by_rows(connection: Connection, names: Collection[str], settled_before_us: int) -> list[tuple[str, str, int]]:
    table = peaks.c
    settled = and_(func.max(table.ended) == 1, func.max(table.last_us) < settled_before_us)
    query = (
        select(table.prediction, table.job, table.restart)
        .where(table.pid == 0, _known(table.prediction, names), ~_learned(table.prediction, table.job, table.restart))
        .group_by(table.prediction, table.job, table.restart)
        .having(or_(func.min(table.ended) == 1, settled))
    )
    return [(row.prediction, row.job, row.restart) for row in connection.execute(query)]


def _known(column: ColumnElement[str], names: Collection[str]) -> ColumnElement[bool]:
    return and_(column.in_(sorted(names)), exists().where(predictions.c.prediction == column))


def _learned(prediction: ColumnElement[str], job: ColumnElement[str], restart: ColumnElement[int]) -> ColumnElement[bool]:
    table = observations.c
    return exists().where(table.prediction == prediction, table.job == job, table.restart == restart)


def _attempt(connection: Connection, prediction: str, job: str, restart: int) -> Attempt:
    figures = connection.execute(select(predictions).where(predictions.c.prediction == prediction)).one()
    of_attempt = (peaks.c.prediction == prediction, peaks.c.job == job, peaks.c.restart == restart)
    rows = tuple(_peak(row) for row in connection.execute(select(peaks).where(*of_attempt)))
    event, event_us = _terminal_event(connection, prediction, job, restart)
    return Attempt(
        prediction=prediction,
        job=job,
        restart=restart,
        group=figures.group_name,
        required_bytes=figures.required_bytes,
        device_bytes=figures.device_bytes,
        model_version=figures.model_version,
        event=event,
        finished_us=max((event_us, *(row.last_us for row in rows))),
        peaks=rows,
    )


def _terminal_event(connection: Connection, prediction: str, job: str, restart: int) -> tuple[str, int]:
    """The terminal event of an attempt; an out-of-memory outweighs what else was said about the same end."""
    table = job_events.c
    query = select(table.event, table.event_us).where(
        table.prediction == prediction, table.job == job, table.restart == restart, table.event.in_(TERMINAL_EVENTS)
    )
    order = ("oom", "failed", "cancelled", "finished")
    events = sorted(((row.event, row.event_us) for row in connection.execute(query)), key=lambda each: order.index(each[0]))
    return events[0] if events else ("", 0)


def _peak(row: Row[tuple[object, ...]]) -> PeakRow:
    values = row._mapping  # noqa: SLF001 - the documented name of SQLAlchemy's mapping view
    return PeakRow(**{field.name: values[field.name] for field in fields(PeakRow)})
