"""`peakgate suggest`: what makes a job fit."""

from __future__ import annotations

import sys
from functools import partial
from typing import Annotated

import typer

from peakgate.client.options import Database, Gpu, OneJob, Output, OutputForm, Server

Solve = Annotated[
    str, typer.Option(metavar="FIELD", help="A numeric field (batch.sequence_length): its largest value that fits, or its smallest.")
]
Allow = Annotated[
    list[str] | None, typer.Option(metavar="WORD", help="What suggestions may alter besides: numerics, objective or batch. Repeatable.")
]
Keep = Annotated[
    list[str] | None,
    typer.Option(metavar="FIELD", help="What no suggestion may change: a field, or a part such as parallelism. Repeatable."),
]
Pareto = Annotated[bool, typer.Option("--pareto", help="Shows memory against step time: the plans that no other one beats in both.")]


Write = Annotated[
    int, typer.Option(metavar="NUMBER", help="Writes this suggestion into the launch files that the job was read from, with a backup each.")
]


def suggest(
    *,
    job: OneJob,
    solve: Solve = "",
    allow: Allow = None,
    keep: Keep = None,
    pareto: Pareto = False,
    write: Write = 0,
    gpu: Gpu = None,
    server: Server = None,
    db: Database = None,
    output: OutputForm = Output.table,
) -> None:
    """Ranks changes that make a job fit, with the largest micro-batch and the smallest GPU. Exit status as of predict."""
    from peakgate.client.asked import jobs_and_command
    from peakgate.client.connect import open_client
    from peakgate.client.origin import naming_places
    from peakgate.client.output import human_console, write_json
    from peakgate.client.presenter import STATUS_OF_VERDICT, answer_and_origin
    from peakgate.client.render.advice import print_advice
    from peakgate.client.render.origin import print_origin
    from peakgate.client.rewrite import print_backups, show_edits, write_edits
    from peakgate.client.sources import read_source
    from peakgate.client.unknown_model import ask

    paths, command = jobs_and_command(job, sys.argv)
    source = read_source(paths, sys.stdin.buffer, command).on(gpu)
    with open_client(server, db) as client, naming_places(source.origin):
        with client.naming_every_field():
            wanted = source.required()
        call = partial(client.suggest, solve=solve, allow=allow or (), keep=keep or (), pareto=pareto)
        advice = ask(call, wanted, source)
    source.checked(advice.prediction)
    written = show_edits(advice.suggestions, source.launch) if source.launch is not None else []
    if output is not Output.table:
        write_json(answer_and_origin(advice, source.origin), output)
    console = human_console(output)
    print_advice(console, source.label, advice)
    print_origin(console, source.origin)
    if write:
        print_backups(console, write_edits(written, write), written[write - 1].unsaid)
    raise typer.Exit(STATUS_OF_VERDICT[advice.prediction.verdict])
