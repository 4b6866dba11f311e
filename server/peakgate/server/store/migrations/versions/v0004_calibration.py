"""What the calibration is told, its versions with what they are for, its one writer, and rejected jobs that were run all the same."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

NO_TEXT = sa.text("''")

ADDED = (
    ("predictions", "subject", sa.Text(), NO_TEXT),
    ("predictions", "user_name", sa.String(length=256), NO_TEXT),
    ("observations", "body", sa.Text(), NO_TEXT),
    ("observations", "sequence", sa.BigInteger(), "0"),
    ("observations", "aside", sa.Integer(), "0"),
    ("observations", "released", sa.Integer(), "0"),
    ("observations", "released_by", sa.String(length=256), NO_TEXT),
    ("observations", "released_why", sa.Text(), NO_TEXT),
    ("calibrations", "parent", sa.BigInteger(), "0"),
    ("calibrations", "kind", sa.String(length=16), NO_TEXT),
    ("calibrations", "note", sa.Text(), NO_TEXT),
    ("calibrations", "trial", sa.Text(), NO_TEXT),
)
"""Columns with what holds of the rows that are there: of them the calibration is told nothing, it learns from the next jobs."""


def upgrade() -> None:
    """Towards this version. Columns come with their defaults: SQLite could not write a table anew to which others refer."""
    for name, column, kind, value in ADDED:
        op.add_column(name, sa.Column(column, kind, nullable=False, server_default=value))
    op.create_index(op.f("ix_observations_sequence"), "observations", ["sequence"], unique=False)
    op.create_table(
        "leases",
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("holder", sa.String(length=64), nullable=False),
        sa.Column("fence", sa.BigInteger(), nullable=False),
        sa.Column("expires_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_leases")),
    )
    op.create_table(
        "tries",
        sa.Column("prediction", sa.String(length=64), nullable=False),
        sa.Column("user_name", sa.String(length=256), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("created_us", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("prediction", name=op.f("pk_tries")),
    )
    op.create_index("ix_tries_user_name_created_us", "tries", ["user_name", "created_us"], unique=False)
