"""Runs the migrations on the connection, and in the transaction, that the caller holds."""

from __future__ import annotations

from alembic import context

from peakgate.server.store.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
context.run_migrations()
