"""Observed peaks and job events. Peaks are merged by maximum, so that rows may come twice, late and in any order."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import asdict, fields, replace
from operator import attrgetter

from sqlalchemy import ColumnElement, Connection, Row, and_, case, exists, func, or_, select

from peakgate.server.store import predictions as prediction_rows
from peakgate.server.store.bulk import Bulk, Insert
from peakgate.server.store.records import TERMINAL_EVENTS, Attempt, EventRow, PeakRow, PhasePeakRow
from peakgate.server.store.session import insert_once
from peakgate.server.store.tables import PEAK_KEY, PHASE_KEY, job_events, observations, peaks, phase_peaks, predictions

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
SMALLER = ("first_us",)
UNITED = ("flags", "ended")
WITH_THE_PEAK = ("peak_us",)
"""What becomes of a column when its key is there already; the others, such as the GPU's name, stay as they were first told."""

PHASE_FIGURES = ("allocated_bytes", "reserved_bytes")


def _merged(statement: Insert) -> dict[str, ColumnElement[object]]:
    """CASE WHEN, since SQLite's max() of two is PostgreSQL's GREATEST."""
    new, old = statement.excluded, peaks.c
    values: dict[str, ColumnElement[object]] = {
        name: case((new[name] > old[name], new[name]), else_=old[name]) for name in (*LARGER, "peak_bytes")
    }
    values |= {name: case((new[name] < old[name], new[name]), else_=old[name]) for name in SMALLER}
    values |= {name: old[name].bitwise_or(new[name]) for name in UNITED}
    return values | {name: case((new.peak_bytes > old.peak_bytes, new[name]), else_=old[name]) for name in WITH_THE_PEAK}


def _merged_phases(statement: Insert) -> dict[str, ColumnElement[object]]:
    new, old = statement.excluded, phase_peaks.c
    return {name: case((new[name] > old[name], new[name]), else_=old[name]) for name in PHASE_FIGURES}


BULK_PEAKS = Bulk(peaks, PEAK_KEY, _merged)
BULK_PHASES = Bulk(phase_peaks, PHASE_KEY, _merged_phases)
key_of = attrgetter(*PEAK_KEY)
values_of = attrgetter(*(column.name for column in peaks.columns))
phase_key_of = attrgetter(*PHASE_KEY)
phase_values_of = attrgetter(*(column.name for column in phase_peaks.columns))


def merge(connection: Connection, rows: Iterable[PeakRow]) -> None:
    """Merges peaks into what is known, and binds their predictions to a job."""
    by_key: dict[tuple[object, ...], PeakRow] = {}
    for row in rows:
        key = key_of(row)
        by_key[key] = merged(by_key[key], row) if key in by_key else row
    BULK_PEAKS.merge(connection, [values_of(by_key[key]) for key in sorted(by_key)])
    named = {row.prediction for row in by_key.values() if row.prediction}
    if named:
        prediction_rows.bind(connection, named, state="running")


def merged(old: PeakRow, new: PeakRow) -> PeakRow:
    """Two rows of one key as one, by the rules of the table: a statement may not touch a row twice."""
    values: dict[str, int] = {name: max(getattr(old, name), getattr(new, name)) for name in (*LARGER, "peak_bytes")}
    values |= {name: min(getattr(old, name), getattr(new, name)) for name in SMALLER}
    values |= {name: getattr(old, name) | getattr(new, name) for name in UNITED}
    of_peak = new if new.peak_bytes > old.peak_bytes else old
    values |= {name: getattr(of_peak, name) for name in WITH_THE_PEAK}
    return replace(old, **values)  # type: ignore[arg-type]  # the names are those of numbers


def merge_phases(connection: Connection, rows: Iterable[PhasePeakRow]) -> None:
    """Merges the allocator's peaks by phase."""
    by_key: dict[tuple[object, ...], PhasePeakRow] = {}
    for row in rows:
        key = phase_key_of(row)
        before = by_key.get(key, row)
        figures = {name: max(getattr(before, name), getattr(row, name)) for name in PHASE_FIGURES}
        by_key[key] = replace(row, **figures)
    BULK_PHASES.merge(connection, [phase_values_of(by_key[key]) for key in sorted(by_key)])


def add_event(connection: Connection, event: EventRow) -> None:
    """Stores a job event; a repeated one changes nothing."""
    if insert_once(connection, job_events, asdict(event)) and event.prediction:
        prediction_rows.bind(connection, [event.prediction], state="running" if event.event == "started" else event.event)


def due(connection: Connection, *, names: Collection[str] | None, settled_before_us: int) -> list[Attempt]:
    """Attempts whose end was seen and that were not learned from, oldest end first. `names`: only of these predictions.

    The end is a terminal event, or every GPU's row having ended; a GPU that says nothing more after the others have ended
    is waited for until `settled_before_us`.
    """
    keys = {*_ended_by_event(connection, names), *_ended_by_rows(connection, names, settled_before_us)}
    attempts = [_attempt(connection, *key) for key in keys]
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
