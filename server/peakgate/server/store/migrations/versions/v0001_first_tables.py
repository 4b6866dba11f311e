"""The first tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Towards this version."""
    _calibrations()
    _job_events()
    _jobs()
    _peaks()
    _predictions()
    _observations()


def _calibrations() -> None:
    op.create_table(
        "calibrations",
        sa.Column("sequence", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False),
        sa.Column("version", sa.String(length=64), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.Column("observations", sa.BigInteger(), nullable=False),
        sa.Column("groups", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("sequence", name=op.f("pk_calibrations")),
    )
    op.create_index(op.f("ix_calibrations_version"), "calibrations", ["version"], unique=False)


def _job_events() -> None:
    op.create_table(
        "job_events",
        sa.Column("cluster", sa.String(length=256), nullable=False),
        sa.Column("job", sa.String(length=256), nullable=False),
        sa.Column("restart", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("prediction", sa.String(length=256), nullable=False),
        sa.Column("event", sa.String(length=16), nullable=False),
        sa.Column("event_us", sa.BigInteger(), nullable=False),
        sa.Column("exit_code", sa.Integer(), nullable=True),
        sa.PrimaryKeyConstraint("cluster", "job", "restart", "prediction", "event", name=op.f("pk_job_events")),
    )
    op.create_index(op.f("ix_job_events_prediction"), "job_events", ["prediction"], unique=False)


def _jobs() -> None:
    op.create_table(
        "jobs",
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_jobs")),
    )


def _peaks() -> None:
    op.create_table(
        "peaks",
        sa.Column("cluster", sa.String(length=256), nullable=False),
        sa.Column("node", sa.String(length=256), nullable=False),
        sa.Column("gpu_uuid", sa.String(length=128), nullable=False),
        sa.Column("job", sa.String(length=256), nullable=False),
        sa.Column("restart", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("prediction", sa.String(length=256), nullable=False),
        sa.Column("pid", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("pid_start_ticks", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("gpu_name", sa.String(length=256), nullable=False),
        sa.Column("gpu_total_bytes", sa.BigInteger(), nullable=False),
        sa.Column("peak_bytes", sa.BigInteger(), nullable=False),
        sa.Column("source", sa.String(length=32), nullable=False),
        sa.Column("torch_allocated_bytes", sa.BigInteger(), nullable=False),
        sa.Column("torch_reserved_bytes", sa.BigInteger(), nullable=False),
        sa.Column("first_us", sa.BigInteger(), nullable=False),
        sa.Column("last_us", sa.BigInteger(), nullable=False),
        sa.Column("peak_us", sa.BigInteger(), nullable=False),
        sa.Column("samples", sa.BigInteger(), nullable=False),
        sa.Column("gaps", sa.BigInteger(), nullable=False),
        sa.Column("flags", sa.Integer(), nullable=False),
        sa.Column("ended", sa.Integer(), nullable=False),
        sa.Column("uid", sa.BigInteger(), nullable=False),
        sa.Column("boot_id", sa.String(length=256), nullable=False),
        sa.Column("agent_version", sa.String(length=256), nullable=False),
        sa.Column("driver_version", sa.String(length=256), nullable=False),
        sa.PrimaryKeyConstraint(
            "cluster", "node", "gpu_uuid", "job", "restart", "prediction", "pid", "pid_start_ticks", name=op.f("pk_peaks")
        ),
    )
    op.create_index(op.f("ix_peaks_prediction"), "peaks", ["prediction"], unique=False)


def _predictions() -> None:
    op.create_table(
        "predictions",
        sa.Column("prediction", sa.String(length=64), nullable=False),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.Column("request_id", sa.String(length=128), nullable=True),
        sa.Column("request_digest", sa.String(length=64), nullable=True),
        sa.Column("job_digest", sa.String(length=64), nullable=False),
        sa.Column("job_name", sa.String(length=200), nullable=False),
        sa.Column("verdict", sa.String(length=16), nullable=False),
        sa.Column("group_name", sa.String(length=200), nullable=False),
        sa.Column("required_bytes", sa.BigInteger(), nullable=False),
        sa.Column("device_bytes", sa.BigInteger(), nullable=False),
        sa.Column("bound_bytes", sa.BigInteger(), nullable=False),
        sa.Column("total_bytes", sa.BigInteger(), nullable=False),
        sa.Column("model_version", sa.String(length=64), nullable=False),
        sa.Column("calibration_version", sa.String(length=64), nullable=False),
        sa.Column("answer", sa.LargeBinary(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.ForeignKeyConstraint(["job_digest"], ["jobs.digest"], name=op.f("fk_predictions_job_digest")),
        sa.PrimaryKeyConstraint("prediction", name=op.f("pk_predictions")),
        sa.UniqueConstraint("request_id", name=op.f("uq_predictions_request_id")),
    )
    op.create_index(op.f("ix_predictions_job_digest"), "predictions", ["job_digest"], unique=False)
    op.create_index("ix_predictions_newest", "predictions", ["created_us", "prediction"], unique=False)


def _observations() -> None:
    op.create_table(
        "observations",
        sa.Column("prediction", sa.String(length=64), nullable=False),
        sa.Column("job", sa.String(length=256), nullable=False),
        sa.Column("restart", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("observed_bytes", sa.BigInteger(), nullable=False),
        sa.Column("predicted_bytes", sa.BigInteger(), nullable=False),
        sa.Column("lower_bytes", sa.BigInteger(), nullable=False),
        sa.Column("upper_bytes", sa.BigInteger(), nullable=True),
        sa.Column("finished_us", sa.BigInteger(), nullable=False),
        sa.Column("applied_us", sa.BigInteger(), nullable=False),
        sa.Column("learned", sa.Integer(), nullable=False),
        sa.Column("reason", sa.String(length=64), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["prediction"], ["predictions.prediction"], name=op.f("fk_observations_prediction")),
        sa.PrimaryKeyConstraint("prediction", "job", "restart", name=op.f("pk_observations")),
    )
    op.create_index("ix_observations_kept_out", "observations", ["learned", "applied_us"], unique=False)
