"""`peakgate db`: the service's database."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from peakgate.client.errors import InputError
from peakgate.client.extras import extra

db = typer.Typer(no_args_is_help=True, help="The service's database.")

Url = Annotated[str | None, typer.Option("--db", metavar="URL", help="The database. Default: PEAKGATE_DATABASE_URL.")]


@db.command()
def upgrade(*, url: Url = None) -> None:
    """Brings the tables to the form that this version needs; a second run changes nothing."""
    url = url or os.environ.get("PEAKGATE_DATABASE_URL")
    if not url:
        raise InputError("name the database with --db URL or PEAKGATE_DATABASE_URL", reason="USAGE")
    with extra("server"):
        from peakgate.server.main import upgrade_database
    raise typer.Exit(upgrade_database(url))
