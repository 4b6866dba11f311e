"""The attempts of which events or peaks have seen the end."""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import fields

from sqlalchemy import ColumnElement, Connection, Row, and_, exists, func, or_, select

from peakgate.server.store import ended
from peakgate.server.store.events import outcome
from peakgate.server.store.records import AGENT, NO_WAIT_US, SAMPLED, TERMINAL_EVENTS, Attempt, PeakRow
from peakgate.server.store.tables import job_events, jobs, observations, peaks, predictions


def due(
    connection: Connection, *, names: Collection[str] | None, settled_before_us: int, quiet_before_us: int = NO_WAIT_US
) -> list[Attempt]:
    """Attempts whose end was seen and that were not learned from, oldest end first. `names`: only of these predictions.

    The end is a terminal event, or every GPU's row having ended; a GPU that says nothing more after the others have ended
    is waited for until `settled_before_us`, and so are an agent's last rows when a scheduler, or another node's agent, told the end
    before it. An end that only agents told counts when nothing came after it until `quiet_before_us`: between two programs of a job
    the GPU is as empty as after its end.
    """
    if names is None:
        names = ended.names(connection)
    keys = {*_ended_by_event(connection, names), *_ended_by_rows(connection, names, settled_before_us)}
    found = (_attempt(connection, *key, settled_before_us=settled_before_us, quiet_before_us=quiet_before_us) for key in keys)
    attempts = [attempt for attempt in found if attempt is not None]
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


def _attempt(
    connection: Connection, prediction: str, job: str, restart: int, *, settled_before_us: int, quiet_before_us: int
) -> Attempt | None:
    """None while an agent's last rows, or what may come after the end that it told, are waited for."""
    with_job = select(predictions, jobs.c.body).join(jobs, jobs.c.digest == predictions.c.job_digest)
    figures = connection.execute(with_job.where(predictions.c.prediction == prediction)).one()
    of_attempt = (peaks.c.prediction == prediction, peaks.c.job == job, peaks.c.restart == restart)
    rows = tuple(_peak(row) for row in connection.execute(select(peaks).where(*of_attempt)))
    events = _terminal_events(connection, prediction, job, restart)
    told_us = max((event.event_us for event in events), default=0)
    if told_us >= settled_before_us and _is_behind(rows, {event.origin for event in events}):
        return None
    finished_us = max((told_us, *(row.last_us for row in rows)))
    if finished_us >= quiet_before_us and {event.origin for event in events} <= {AGENT}:
        return None
    return Attempt(
        prediction=prediction,
        job=job,
        restart=restart,
        group=figures.group_name,
        required_bytes=figures.required_bytes,
        device_bytes=figures.device_bytes,
        model_version=figures.model_version,
        event=outcome(events),
        finished_us=finished_us,
        peaks=rows,
        ended_well=outcome(events) == "finished" and any(event.exit_code == 0 for event in events),
        card_bytes=figures.total_bytes,
        bound_bytes=figures.bound_bytes,
        verdict=figures.verdict,
        job_body=zlib.decompress(figures.body),
        job_digest=figures.job_digest,
        subject=figures.subject,
    )


def _terminal_events(connection: Connection, prediction: str, job: str, restart: int) -> Sequence[Row[tuple[object, ...]]]:
    table = job_events.c
    of_attempt = (table.prediction == prediction, table.job == job, table.restart == restart, table.event.in_(TERMINAL_EVENTS))
    return connection.execute(select(job_events).where(*of_attempt)).all()


def _is_behind(rows: Iterable[PeakRow], told_by: Collection[str]) -> bool:
    """Whether an agent still has rows to send: it has not said that its GPU's are over.

    An agent sends them before it tells the end, and that is the end on its own node: on another one the job may go on, and grow. Whoever
    tells the end without a name is believed.
    """
    is_open = any(row.pid == 0 and not row.ended and row.source in SAMPLED for row in rows)
    return is_open and "" not in told_by


def _peak(row: Row[tuple[object, ...]]) -> PeakRow:
    values = row._mapping  # noqa: SLF001 - the documented name of SQLAlchemy's mapping view
    return PeakRow(**{field.name: values[field.name] for field in fields(PeakRow)})
