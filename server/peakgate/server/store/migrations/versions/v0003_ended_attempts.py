"""A list of the attempts that ended and were not learned from, an index of predictions that expire, what the calibration is told."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

KEY = ("prediction", "job", "restart")
TERMINAL_EVENTS = ("finished", "failed", "oom", "cancelled")


ADDED = (
    ("predictions", "subject", sa.Text(), sa.text("''")),
    ("observations", "body", sa.Text(), sa.text("''")),
    ("observations", "sequence", sa.BigInteger(), "0"),
    ("observations", "aside", sa.Integer(), "0"),
    ("calibrations", "parent", sa.BigInteger(), "0"),
)
"""Columns with what holds of the rows that are there: of them the calibration is told nothing, it learns from the next jobs."""


def upgrade() -> None:
    """Towards this version."""
    _add_columns()
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


def _add_columns() -> None:
    """With their defaults, so that no table is written anew: SQLite could not do that to one that others refer to."""
    for name, column, kind, value in ADDED:
        op.add_column(name, sa.Column(column, kind, nullable=False, server_default=value))
    op.create_index(op.f("ix_observations_sequence"), "observations", ["sequence"], unique=False)


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
