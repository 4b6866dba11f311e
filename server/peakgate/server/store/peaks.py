"""Observed peaks and job events. Peaks are merged by maximum, so that rows may come twice, late and in any order."""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, fields

from sqlalchemy import ColumnElement, Connection, Row, and_, case, exists, func, or_, select

from peakgate.server.store import predictions as prediction_rows
from peakgate.server.store.events import outcome
from peakgate.server.store.records import TERMINAL_EVENTS, Attempt, PeakRow, PhasePeakRow
from peakgate.server.store.session import Insert, insert_for
from peakgate.server.store.tables import PEAK_KEY, PHASE_KEY, job_events, jobs, observations, peaks, phase_peaks, predictions

LARGER = (
    "torch_allocated_bytes",
    "torch_reserved_bytes",
    "last_us",
    "samples",
    "gaps",
    "gpu_total_bytes",
    "steps_done",
    "longest_sequence",
    "alloc_retries",
    "ooms",
    "longest_gap_us",
    "xid",
)
UNITED = ("flags", "ended")
WITH_THE_PEAK = ("peak_us",)
PHASE_FIGURES = ("allocated_bytes", "reserved_bytes")


def merge(connection: Connection, rows: Sequence[PeakRow]) -> None:
    """Merges peaks into what is known, and binds their predictions to a job."""
    if not rows:
        return
    statement = insert_for(connection, peaks)
    connection.execute(_merged(statement), [asdict(row) for row in rows])
    named = {row.prediction for row in rows if row.prediction}
    if named:
        prediction_rows.bind(connection, named, state="running")


def merge_phases(connection: Connection, rows: Sequence[PhasePeakRow]) -> None:
    """Merges the allocator's peaks by phase."""
    if not rows:
        return
    statement = insert_for(connection, phase_peaks)
    new, old = statement.excluded, phase_peaks.c
    values = {name: case((new[name] > old[name], new[name]), else_=old[name]) for name in PHASE_FIGURES}
    connection.execute(statement.on_conflict_do_update(index_elements=list(PHASE_KEY), set_=values), [asdict(row) for row in rows])


def _merged(statement: Insert) -> Insert:
    new, old = statement.excluded, peaks.c
    values: dict[str, ColumnElement[object]] = {name: case((new[name] > old[name], new[name]), else_=old[name]) for name in LARGER}
    values |= {name: old[name].bitwise_or(new[name]) for name in UNITED}
    values |= {name: case((new.peak_bytes > old.peak_bytes, new[name]), else_=old[name]) for name in WITH_THE_PEAK}
    values["peak_bytes"] = case((new.peak_bytes > old.peak_bytes, new.peak_bytes), else_=old.peak_bytes)
    values["first_us"] = case((new.first_us < old.first_us, new.first_us), else_=old.first_us)
    return statement.on_conflict_do_update(index_elements=list(PEAK_KEY), set_=values)


def due(connection: Connection, *, names: Collection[str] | None, settled_before_us: int) -> list[Attempt]:
    """Attempts whose end was seen and that were not learned from, oldest end first. `names`: only of these predictions.

    The end is a terminal event, or every GPU's row having ended; a GPU that says nothing more after the others have ended
    is waited for until `settled_before_us`, and so are an agent's last rows when a scheduler told the end before it.
    """
    keys = {*_ended_by_event(connection, names), *_ended_by_rows(connection, names, settled_before_us)}
    attempts = [attempt for key in keys if (attempt := _attempt(connection, *key, settled_before_us=settled_before_us)) is not None]
    return sorted(attempts, key=lambda each: (each.finished_us, each.prediction, each.job, each.restart))


def _ended_by_event(connection: Connection, names: Collection[str] | None) -> list[tuple[str, str, int]]:
    table = job_events.c
    query = select(table.prediction, table.job, table.restart).where(
        table.event.in_(TERMINAL_EVENTS), _known(table.prediction, names), ~_learned(table.prediction, table.job, table.restart)
    )
    return [(row.prediction, row.job, row.restart) for row in connection.execute(query)]


def _ended_by_rows(connection: Connection, names: Collection[str] | None, settled_before_us: int) -> list[tuple[str, str, int]]:
    table = peaks.c
    settled = and_(func.max(table.ended) == 1, func.max(table.last_us) < settled_before_us)
    query = (
        select(table.prediction, table.job, table.restart)
        .where(table.pid == 0, _known(table.prediction, names), ~_learned(table.prediction, table.job, table.restart))
        .group_by(table.prediction, table.job, table.restart)
        .having(or_(func.min(table.ended) == 1, settled))
    )
    return [(row.prediction, row.job, row.restart) for row in connection.execute(query)]


def _known(column: ColumnElement[str], names: Collection[str] | None) -> ColumnElement[bool]:
    stored = exists().where(predictions.c.prediction == column)
    return stored if names is None else and_(column.in_(sorted(names)), stored)


def _learned(prediction: ColumnElement[str], job: ColumnElement[str], restart: ColumnElement[int]) -> ColumnElement[bool]:
    table = observations.c
    return exists().where(table.prediction == prediction, table.job == job, table.restart == restart)


def _attempt(connection: Connection, prediction: str, job: str, restart: int, *, settled_before_us: int) -> Attempt | None:
    """None while an agent's last rows are waited for."""
    with_job = select(predictions, jobs.c.body).join(jobs, jobs.c.digest == predictions.c.job_digest)
    figures = connection.execute(with_job.where(predictions.c.prediction == prediction)).one()
    of_attempt = (peaks.c.prediction == prediction, peaks.c.job == job, peaks.c.restart == restart)
    rows = tuple(_peak(row) for row in connection.execute(select(peaks).where(*of_attempt)))
    events = _terminal_events(connection, prediction, job, restart)
    told_us = max((event.event_us for event in events), default=0)
    if told_us >= settled_before_us and _is_behind(rows, {event.origin for event in events}):
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
        finished_us=max((told_us, *(row.last_us for row in rows))),
        peaks=rows,
        ended_well=outcome(events) == "finished" and any(event.exit_code == 0 for event in events),
        card_bytes=figures.total_bytes,
        job_body=zlib.decompress(figures.body),
    )


def _terminal_events(connection: Connection, prediction: str, job: str, restart: int) -> Sequence[Row[tuple[object, ...]]]:
    table = job_events.c
    of_attempt = (table.prediction == prediction, table.job == job, table.restart == restart, table.event.in_(TERMINAL_EVENTS))
    return connection.execute(select(job_events).where(*of_attempt)).all()


def _is_behind(rows: Iterable[PeakRow], told_by: Collection[str]) -> bool:
    """Whether an agent still has rows to send: it has not said that its GPU's are over, and only others have told the end."""
    is_open = any(row.pid == 0 and not row.ended and row.source in ("sampled", "device", "") for row in rows)
    return is_open and not set(told_by) & {"", "agent"}


def _peak(row: Row[tuple[object, ...]]) -> PeakRow:
    values = row._mapping  # noqa: SLF001 - the documented name of SQLAlchemy's mapping view
    return PeakRow(**{field.name: values[field.name] for field in fields(PeakRow)})
