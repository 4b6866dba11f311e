"""Observed peaks into the tables. They are merged by maximum, so that rows may come twice, late and in any order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from operator import attrgetter

from sqlalchemy import ColumnElement, Connection, case

from peakgate.server.store import ended
from peakgate.server.store import predictions as prediction_rows
from peakgate.server.store.bulk import Bulk, Insert
from peakgate.server.store.records import PeakRow, PhasePeakRow
from peakgate.server.store.tables import PEAK_KEY, PHASE_KEY, peaks, phase_peaks

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
    """Merges peaks into what is known, binds their predictions to a job, and notes the attempts that have ended on a GPU."""
    by_key: dict[tuple[object, ...], PeakRow] = {}
    for row in rows:
        key = key_of(row)
        by_key[key] = merged(by_key[key], row) if key in by_key else row
    BULK_PEAKS.merge(connection, [values_of(by_key[key]) for key in sorted(by_key)])
    named = {row.prediction for row in by_key.values() if row.prediction}
    if named:
        prediction_rows.bind(connection, named, state="running")
    ended_rows = [row for row in by_key.values() if row.ended and row.pid == 0 and row.prediction]
    attempts = ((row.prediction, row.job, row.restart) for row in ended_rows)
    ended.note(connection, attempts, seen_us=max((row.last_us for row in ended_rows), default=0))


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
