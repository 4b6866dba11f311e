"""Starts and ends of jobs. Events merge like peaks do: repeats, late ones and any order give the same rows and the same state."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import asdict

from sqlalchemy import ColumnElement, Connection, Row, and_, case, or_, select, update

from peakgate.server.store import ended
from peakgate.server.store.bulk import Insert
from peakgate.server.store.records import TERMINAL_EVENTS, EventRow
from peakgate.server.store.session import insert_for
from peakgate.server.store.tables import job_events, predictions

HEAVIEST_FIRST = ("oom", "failed", "cancelled", "finished", "started")
"""Which of several events of one attempt says what became of it: an agent only sees that the processes are gone (finished), a
scheduler also that they were killed or failed, and nobody reports an out-of-memory of a GPU where there was none."""

EVENT_KEY = ("cluster", "job", "restart", "prediction", "event")


def add(connection: Connection, event: EventRow) -> None:
    """Stores a job event and gives its prediction the state that all its events together say.

    A repeated one changes nothing. The nodes of one job report its end at different moments: the last one counts, of a start the first.
    """
    of_prediction = predictions.c.prediction == event.prediction
    if event.prediction:  # two nodes that report at one moment must each see what the other has said
        connection.execute(select(predictions.c.prediction).where(of_prediction).with_for_update())
        if event.event in TERMINAL_EVENTS:
            ended.note(connection, [(event.prediction, event.job, event.restart)], seen_us=event.event_us)
    connection.execute(_merged(insert_for(connection, job_events)), asdict(event))
    if event.prediction:
        connection.execute(update(predictions).where(of_prediction).values(state=_state(connection, event.prediction)))


def outcome(rows: Iterable[Row[tuple[object, ...]]]) -> str:
    """What became of an attempt, by the rows of its events; an end with an exit status or a signal is none that went well."""
    return heaviest([_word(row.event, row.exit_code, row.signal) for row in rows])


def _word(event: str, exit_code: int | None, signal: int | None) -> str:
    return "failed" if event == "finished" and (exit_code or signal) else event


def heaviest(events: Collection[str]) -> str:
    """What became of an attempt that has these events; empty without any."""
    return min(events, key=HEAVIEST_FIRST.index, default="")


def _merged(statement: Insert) -> Insert:
    new, old = statement.excluded, job_events.c
    is_start = old.event == "started"
    moved = or_(and_(is_start, new.event_us < old.event_us), and_(~is_start, new.event_us > old.event_us))
    values: dict[str, ColumnElement[object]] = {"event_us": case((moved, new.event_us), else_=old.event_us)}
    for name in ("exit_code", "signal"):
        values[name] = case((or_(old[name].is_(None), new[name] > old[name]), new[name]), else_=old[name])
    is_named_first = and_(new.origin != "", or_(old.origin == "", new.origin < old.origin))
    values["origin"] = case((is_named_first, new.origin), else_=old.origin)
    return statement.on_conflict_do_update(index_elements=list(EVENT_KEY), set_=values)


def _state(connection: Connection, prediction: str) -> str:
    """Of the attempt whose events are the newest: what its heaviest event says."""
    rows = connection.execute(select(job_events).where(job_events.c.prediction == prediction)).all()
    attempts = {(row.cluster, row.job, row.restart): row.event_us for row in sorted(rows, key=lambda row: int(row.event_us))}
    newest = max(attempts, key=lambda attempt: (attempts[attempt], attempt))
    event = outcome(row for row in rows if (row.cluster, row.job, row.restart) == newest)
    return "running" if event == "started" else event
