"""A list of the attempts that ended and were not learned from, and an index of the predictions that expire: neither is searched for."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

KEY = ("prediction", "job", "restart")
TERMINAL_EVENTS = ("finished", "failed", "oom", "cancelled")


def upgrade() -> None:
    """Towards this version."""
    op.create_table(
        "ended_attempts",
        sa.Column("prediction", sa.String(length=256), nullable=False),
        sa.Column("job", sa.String(length=256), nullable=False),
        sa.Column("restart", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("seen_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("prediction", "job", "restart", name=op.f("pk_ended_attempts")),
    )
    _list_what_ended()
    unused = sa.column("state") == ""
    op.create_index("ix_predictions_unused", "predictions", ["created_us"], unique=False, sqlite_where=unused, postgresql_where=unused)


def _list_what_ended() -> None:
    """What was left over by the version before."""
    peaks, events = _table("peaks", "pid", "ended", "last_us"), _table("job_events", "event", "event_us")
    applied, target = _table("observations"), _table("ended_attempts", "seen_us")
    ended = sa.union_all(
        sa.select(peaks.c.prediction, peaks.c.job, peaks.c.restart, peaks.c.last_us.label("seen_us")).where(
            peaks.c.ended == 1, peaks.c.pid == 0, peaks.c.prediction != ""
        ),
        sa.select(events.c.prediction, events.c.job, events.c.restart, events.c.event_us).where(
            events.c.event.in_(TERMINAL_EVENTS), events.c.prediction != ""
        ),
    ).subquery()
    same = [applied.c[name] == ended.c[name] for name in KEY]
    rows = sa.select(ended.c.prediction, ended.c.job, ended.c.restart, sa.func.max(ended.c.seen_us)).where(~sa.exists().where(*same))
    grouped = rows.group_by(ended.c.prediction, ended.c.job, ended.c.restart)
    op.execute(target.insert().from_select([*KEY, "seen_us"], grouped))


def _table(name: str, *more: str) -> sa.TableClause:
    return sa.table(name, *(sa.column(each) for each in (*KEY, *more)))
