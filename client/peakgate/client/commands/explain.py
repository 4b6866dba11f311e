"""`peakgate explain`: an answer with everything that is behind it."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from peakgate.client.options import Database, Gpu, Output, OutputForm, Server

if TYPE_CHECKING:
    from peakgate.client.connect import Client
    from peakgate.v1.prediction_pb2 import PredictResponse

Subject = Annotated[str, typer.Argument(metavar="JOB|ID", help="A job document, or the name of a stored prediction.")]
_PREFIX = "predictions/"
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
    from peakgate.client.connect import open_client, require_store
    from peakgate.client.output import human_console, write_json
    from peakgate.client.render.explanation import print_explanation
    from peakgate.client.render.page import write_page
    from peakgate.v1.document import answer_to_dict

    subject = _full_name(subject)
    if subject.startswith(_PREFIX):
        require_store(server, db)
    with open_client(server, db) as client:
        answer = _answer(client, subject, gpu)
    if output is not Output.table:
        write_json(answer_to_dict(answer), output)
    console = human_console(output)
    print_explanation(console, subject, answer)
    if html is not None:
        write_page(html, subject, answer)
        console.print(f"\n  Page written to {html}", soft_wrap=True)


def _answer(client: Client, subject: str, gpu: str | None) -> PredictResponse:
    from peakgate.client.sources import read_one

    if subject.startswith(_PREFIX):
        return client.get_prediction(subject).prediction
    with client.naming_every_field():
        job = read_one(subject, sys.stdin.buffer, gpu)
    return client.explain(job)


def _full_name(subject: str) -> str:
    """A stored prediction may be named without its prefix; a file of that name is a file."""
    return _PREFIX + subject if _BARE_ID.fullmatch(subject) and not Path(subject).exists() else subject
