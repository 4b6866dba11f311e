"""`peakgate jobs`: stored predictions beside what was observed."""

from __future__ import annotations

from typing import Annotated

import typer

from peakgate.client.options import Database, Output, OutputForm, Server

Limit = Annotated[int, typer.Option("--limit", "-n", min=1, help="At most so many, newest first.")]
Observed = Annotated[bool, typer.Option("--observed", help="Only jobs that an agent has seen.")]
Tries = Annotated[bool, typer.Option("--tries", help="Only rejected jobs that were let run all the same: who, why, and what came of it.")]


def jobs(
    *,
    limit: Limit = 50,
    observed: Observed = False,
    tries: Tries = False,
    server: Server = None,
    db: Database = None,
    output: OutputForm = Output.table,
) -> None:
    """Lists stored predictions, newest first, with the peaks that agents reported."""
    from peakgate.client.connect import open_client, require_store
    from peakgate.client.output import human_console, write_all
    from peakgate.client.render.jobs import print_jobs, print_tries
    from peakgate.v1.document import answer_to_dict

    require_store(server, db)
    with open_client(server, db) as client:
        found = client.list_predictions(limit=limit, observed_only=observed, tries_only=tries)
    if output is Output.table:
        (print_tries if tries else print_jobs)(human_console(output), found)
    else:
        write_all([answer_to_dict(each) for each in found], output)
