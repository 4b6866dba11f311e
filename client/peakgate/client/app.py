"""The verbs of the command, put together."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Annotated

import typer

VERBS = (
    "predict",
    "read",
    "suggest",
    "explain",
    "diagnose",
    "trace",
    "probe",
    "jobs",
    "calibration",
    "catalog",
    "schema",
    "serve",
    "agent",
    "gate",
    "webhook",
    "kueue",
    "doctor",
    "db",
    "slurm",
    "sbatch",
    "srun",
    "salloc",
)
"""Each is a module of `commands`, and in it the function or the group of that name."""


def app_for(arguments: Sequence[str]) -> typer.Typer:
    """The command for these arguments: with the one verb that they call, or with all of them to be listed.

    Typer builds every option of every verb that it is given, which takes longer than the answer to a job.
    """
    app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)
    app.callback()(_peakgate)
    called = arguments[0] if arguments else ""
    for verb in (called,) if called in VERBS else VERBS:
        member = getattr(import_module(f"peakgate.client.commands.{verb}"), verb)
        if isinstance(member, typer.Typer):
            app.add_typer(member, name=verb)
        else:
            app.command()(member)
    return app


def _print_version(wanted: bool) -> None:  # noqa: FBT001 - the form of an option's callback
    if wanted:
        from importlib.metadata import version

        typer.echo(f"peakgate {version('peakgate')}")
        raise typer.Exit


Version = Annotated[bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Shows the version.")]


def _peakgate(*, _version: Version = False) -> None:
    """Says before a training job is queued whether its worst GPU runs out of memory, when, and what makes it fit."""
