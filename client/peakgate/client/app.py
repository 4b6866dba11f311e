"""The verbs of the command, put together."""

from __future__ import annotations

from typing import Annotated

import typer

from peakgate.client.commands.agent import agent
from peakgate.client.commands.catalog import catalog
from peakgate.client.commands.db import app as db
from peakgate.client.commands.doctor import doctor
from peakgate.client.commands.explain import explain
from peakgate.client.commands.jobs import jobs
from peakgate.client.commands.predict import predict
from peakgate.client.commands.schema import schema
from peakgate.client.commands.serve import serve
from peakgate.client.commands.suggest import suggest

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)

for verb in (predict, suggest, explain, jobs, catalog, schema, serve, agent, doctor):
    app.command()(verb)
app.add_typer(db, name="db")


def _print_version(wanted: bool) -> None:  # noqa: FBT001 - the form of an option's callback
    if wanted:
        from importlib.metadata import version

        typer.echo(f"peakgate {version('peakgate')}")
        raise typer.Exit


@app.callback()
def _peakgate(
    *, _version: Annotated[bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Shows the version.")] = False
) -> None:
    """Says before a training job is queued whether its worst GPU runs out of memory, when, and what makes it fit."""
