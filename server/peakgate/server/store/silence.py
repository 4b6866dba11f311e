"""Nodes whose agent owes news of what runs on them.

An agent refreshes the row of everything that runs every ten seconds, so an open row that has not moved for an hour is one that nobody
watches any more. A node without an open row owes nothing: it may be idle, or out of service.
"""

from __future__ import annotations

from sqlalchemy import ColumnElement, Connection, and_, exists, func, or_, select

from peakgate.server.store.records import IMPORTED, TERMINAL_EVENTS, Silence
from peakgate.server.store.tables import job_events, observations, peaks


def silence(connection: Connection, *, began_us: int, forgotten_us: int, silent_us: int) -> Silence:
    """Nodes by the rows that began since `began_us`: an index leads to them. A node that was not seen since `forgotten_us` is forgotten."""
    seen = and_(peaks.c.first_us >= began_us, peaks.c.last_us >= forgotten_us, peaks.c.source.not_in(IMPORTED))
    node = peaks.c.cluster, peaks.c.node
    heard = connection.execute(select(*node, func.max(peaks.c.last_us).label("last_us")).where(seen).group_by(*node)).all()
    quiet = {(row.cluster, row.node) for row in heard if row.last_us < silent_us}
    if not quiet:
        return Silence(nodes=len(heard), silent=0)
    runs = and_(seen, peaks.c.ended == 0, peaks.c.last_us < silent_us, ~_is_over())
    owing = {(row.cluster, row.node) for row in connection.execute(select(*node).where(runs).distinct())}
    return Silence(nodes=len(heard), silent=len(quiet & owing))


def _is_over() -> ColumnElement[bool]:
    """Somebody else has told the end of the attempt, or it was learned from."""
    event, learned, row = job_events.c, observations.c, peaks.c
    same_attempt = (event.cluster == row.cluster, event.job == row.job, event.restart == row.restart)
    told = exists().where(*same_attempt, event.event.in_(TERMINAL_EVENTS))
    return or_(told, exists().where(learned.prediction == row.prediction, learned.job == row.job, learned.restart == row.restart))
