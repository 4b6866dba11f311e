"""`peakgate explain`: an answer with everything that is behind it."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from peakgate.client.options import Database, Gpu, Output, OutputForm, Server
from peakgate.v1.names import PREFIX, full_name, request_id_of

if TYPE_CHECKING:
    from peakgate.client.connect import Client
    from peakgate.client.origin import Origin
    from peakgate.v1.prediction_pb2 import PredictResponse

_HELP = "A job document or a launch file, the name of a stored prediction, or behind -- a launch command."
Subject = Annotated[list[str], typer.Argument(metavar="JOB|ID|-- COMMAND", help=_HELP)]
_BARE_ID = re.compile(r"[0-9a-f]{32}")
Html = Annotated[Path | None, typer.Option(metavar="FILE", help="Also writes one page that needs no network.")]


def explain(
    *,
    subject: Subject,
    html: Html = None,
    gpu: Gpu = None,
    server: Server = None,
    db: Database = None,
    output: OutputForm = Output.table,
) -> None:
    """Shows the ledger at the peak, one step in time, the worst rank and what would change it."""
    from peakgate.client.asked import jobs_and_command
    from peakgate.client.connect import open_client, require_store
    from peakgate.client.output import human_console, write_json
    from peakgate.client.presenter import answer_and_origin
    from peakgate.client.render.explanation import print_explanation
    from peakgate.client.render.origin import print_origin
    from peakgate.client.render.page import write_page
    from peakgate.client.render.text import escape

    paths, command = jobs_and_command([_named(each) for each in subject], sys.argv)
    if paths and paths[0].startswith(PREFIX):
        require_store(server, db)
    with open_client(server, db) as client:
        label, answer, origin, user = _answer(client, paths, command, gpu)
    if html is not None:
        write_page(html, label, answer)  # before anything is printed: whoever reads only the first lines has the page all the same
    if output is not Output.table:
        write_json(answer_and_origin(answer, origin), output)
    console = human_console(output)
    print_explanation(console, label, answer)
    print_origin(console, origin)
    if user:
        console.print(f"  Submitted by {escape(user)}", soft_wrap=True)
    if html is not None:
        console.print(f"\n  Page written to {html}", soft_wrap=True)


def _answer(client: Client, paths: list[str], command: list[str], gpu: str | None) -> tuple[str, PredictResponse, Origin | None, str]:
    """Label, answer, where the job was read from, and who submitted a stored one."""
    from peakgate.client.origin import naming_places
    from peakgate.client.sources import read_source
    from peakgate.client.unknown_model import ask

    if len(paths) == 1 and not command and paths[0].startswith(PREFIX):
        found = client.get_prediction(paths[0])
        return paths[0], found.prediction, None, found.stored.user
    source = read_source(paths, sys.stdin.buffer, command).on(gpu)
    with naming_places(source.origin):
        with client.naming_every_field():
            job = source.required()
        return source.label, source.checked(ask(client.explain, job, source)), source.origin, ""


def _named(subject: str) -> str:
    """A stored prediction may be named without its prefix, or by its request id; a file of that name is a file."""
    is_id = _BARE_ID.fullmatch(subject) or request_id_of(subject)
    return full_name(subject) if is_id and not Path(subject).exists() else subject
