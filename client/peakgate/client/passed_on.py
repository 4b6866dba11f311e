"""Verbs that are other programs' names: listed like ours, and called with those programs' words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, NoReturn

import typer

Words = Annotated[list[str] | None, typer.Argument(metavar="WORDS", help="Options, script and arguments, or the command, as they are.")]


def pass_on(program: str, words: Sequence[str] | None) -> NoReturn:
    """Judges and submits. `main.py` gets here before a command line is built, unless somebody calls the app by itself."""
    from peakgate.hooks.slurm.submit import run

    raise typer.Exit(run(program, words or []))
