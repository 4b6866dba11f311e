"""Peaks keep their source and step apart, and what the in-process helper says; observations say what they rest on."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

PROCESS_KEY = ("cluster", "node", "gpu_uuid", "job", "restart", "prediction", "pid", "pid_start_ticks")
OBSERVED_TEXTS = (("kind", 8), ("source", 32), ("confidence", 1), ("origin", 16), ("node", 256), ("gpu_uuid", 128))
OBSERVED_NUMBERS = ("steps_done", "longest_sequence")
NUMBERS = ("steps_done", "longest_sequence", "alloc_retries", "ooms", "longest_gap_us")


def upgrade() -> None:
    """Towards this version."""
    _peaks()
    _phase_peaks()
    _job_events()
    _observations()


def _peaks() -> None:
    with op.batch_alter_table("peaks") as table:
        table.add_column(sa.Column("step", sa.String(length=256), nullable=False, server_default=""))
        for name in NUMBERS:
            table.add_column(sa.Column(name, sa.BigInteger(), nullable=False, server_default="0"))
        table.add_column(sa.Column("xid", sa.Integer(), nullable=False, server_default="0"))
        table.drop_constraint("pk_peaks", type_="primary")
        table.create_primary_key("pk_peaks", [*PROCESS_KEY, "source", "step"])
    with op.batch_alter_table("peaks") as table:
        for name in ("step", *NUMBERS, "xid"):
            table.alter_column(name, server_default=None)


def _phase_peaks() -> None:
    op.create_table(
        "phase_peaks",
        sa.Column("cluster", sa.String(length=256), nullable=False),
        sa.Column("node", sa.String(length=256), nullable=False),
        sa.Column("gpu_uuid", sa.String(length=128), nullable=False),
        sa.Column("job", sa.String(length=256), nullable=False),
        sa.Column("restart", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("prediction", sa.String(length=256), nullable=False),
        sa.Column("pid", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("pid_start_ticks", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("phase", sa.String(length=16), nullable=False),
        sa.Column("allocated_bytes", sa.BigInteger(), nullable=False),
        sa.Column("reserved_bytes", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint(*PROCESS_KEY, "phase", name=op.f("pk_phase_peaks")),
    )
    op.create_index(op.f("ix_phase_peaks_prediction"), "phase_peaks", ["prediction"], unique=False)


def _job_events() -> None:
    with op.batch_alter_table("job_events") as table:
        table.add_column(sa.Column("signal", sa.Integer(), nullable=True))
        table.add_column(sa.Column("origin", sa.String(length=32), nullable=False, server_default=""))
    with op.batch_alter_table("job_events") as table:
        table.alter_column("origin", server_default=None)
    op.create_index(op.f("ix_job_events_event_us"), "job_events", ["event_us"], unique=False)
    op.create_index(op.f("ix_peaks_first_us"), "peaks", ["first_us"], unique=False)


def _observations() -> None:
    """What was learned before had come from an agent, and of what it was is not known."""
    kind = sa.case((sa.column("reason") != "", "dropped"), (sa.column("upper_bytes").is_(None), "lower"), else_="exact")
    with op.batch_alter_table("observations") as table:
        for name, length in OBSERVED_TEXTS:
            table.add_column(sa.Column(name, sa.String(length=length), nullable=False, server_default=""))
        for name in OBSERVED_NUMBERS:
            table.add_column(sa.Column(name, sa.BigInteger(), nullable=False, server_default="0"))
    op.execute(
        sa.table("observations", sa.column("kind"), sa.column("confidence"), sa.column("origin"))
        .update()
        .values(kind=kind, confidence="D", origin="agent")
    )
    with op.batch_alter_table("observations") as table:
        for name in (*(name for name, _ in OBSERVED_TEXTS), *OBSERVED_NUMBERS):
            table.alter_column(name, server_default=None)
