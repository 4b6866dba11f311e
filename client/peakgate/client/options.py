"""Options that several verbs take, declared once."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer


class Output(StrEnum):
    """Forms of an answer."""

    table = "table"
    json = "json"
    jsonl = "jsonl"


_JOB = "A job document, a launch file (script, manifest, a framework's config), or - for standard input"
OneJob = Annotated[list[str], typer.Argument(metavar="JOB|-- COMMAND", help=f"{_JOB}; behind --, a launch command.")]
ManyJobs = Annotated[list[str], typer.Argument(metavar="JOB|-- COMMAND", help=f"{_JOB} (JSON Lines); behind --, a launch command.")]
Server = Annotated[str | None, typer.Option(metavar="HOST:PORT", help="The service. Default: PEAKGATE_SERVER, else one in this process.")]
Database = Annotated[
    str | None, typer.Option(metavar="URL", help="Database of the service in this process. Default: PEAKGATE_DATABASE_URL, else none.")
]
OutputForm = Annotated[Output, typer.Option("--output", "-o", help="A table for people, JSON, or one line of JSON a job.")]
User = Annotated[
    str,
    typer.Option(metavar="NAME", help="Who submits: cluster/uid as agents see the owner, or a name of the site. Default: nobody."),
]
Gpu = Annotated[str | None, typer.Option(metavar="NAME", help="Judge the job on this card of the catalogue instead of the stated one.")]
