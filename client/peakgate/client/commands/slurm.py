"""`peakgate slurm`: for those who run a Slurm cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from peakgate.client.options import Database, Output, OutputForm, Server
from peakgate.client.slurm_defaults import CARDS_FILE, JOURNAL_FILE

slurm = typer.Typer(no_args_is_help=True, help="For those who run a Slurm cluster.")

Journal = Annotated[Path, typer.Option(metavar="FILE", help="The gate's journal.")]
Since = Annotated[str, typer.Option(metavar="TIME", help="Begin of the window: 7d ago, a time, or seconds since the epoch.")]
SacctSince = Annotated[str, typer.Option("--since", metavar="TIME", help="Begin of the window, in sacct's forms.")]
SacctFile = Annotated[
    str, typer.Argument(metavar="[FILE]", help="Output of sacct -P or --json; - for standard input. Else sacct is asked.")
]
Jobs = Annotated[str | None, typer.Option("--jobs", metavar="FILE", help="Lines of JOB PREDICTION, where no comment says it.")]

Cards = Annotated[Path, typer.Option("--cards", metavar="FILE", help="The table of cards (YAML).")]
GateSocket = Annotated[Path | None, typer.Option("--socket", metavar="PATH", help="The gate's. Default: the one that the hook asks.")]
Write = Annotated[bool, typer.Option("--write", help="Write the table, with the rows that a person stated kept.")]


@slurm.command()
def ended(*, server: Server = None, db: Database = None) -> None:
    """Tells the service how a job ended; called by EpilogSlurmctld, whose variables name the job."""
    import os

    from peakgate.client.connect import open_client, require_store
    from peakgate.hooks.slurm.ending import job_that_ended, scontrol, tell

    require_store(server, db)
    job = job_that_ended(os.environ, look=scontrol)
    if job is None or not job.prediction:
        return
    with open_client(server, db) as client:
        list(tell(client, [job]))


@slurm.command()
def sync(
    *,
    file: SacctFile = "",
    since: SacctSince = "now-1days",
    jobs: Jobs = None,
    server: Server = None,
    db: Database = None,
    output: OutputForm = Output.table,
) -> None:
    """Tells the service how jobs ended, out of the accounting: for sites without an epilog. A second run changes nothing."""
    from peakgate.client.connect import open_client, require_store
    from peakgate.client.imports.files import read_job_list, read_text
    from peakgate.client.output import human_console, write_all
    from peakgate.client.render.imports import import_as_dict, print_imports
    from peakgate.hooks.slurm.ending import ended_in, sacct, tell

    require_store(server, db)
    text = read_text(file) if file else sacct(since)
    found = ended_in(text, where=file or "sacct", mapping=read_job_list(jobs).predictions)
    with open_client(server, db) as client:
        told = list(tell(client, found))
    if output is Output.table:
        print_imports(human_console(output), told)
    else:
        write_all([import_as_dict(each) for each in told], output)


@slurm.command()
def report(
    *,
    since: Since = "7d",
    journal: Journal = JOURNAL_FILE,
    server: Server = None,
    db: Database = None,
    output: OutputForm = Output.table,
) -> None:
    """Says what the gate's verdicts were worth: out-of-memory errors it would have stopped, jobs it would have refused for nothing."""
    import time

    from peakgate.client.connect import open_client, require_store
    from peakgate.client.errors import InputError
    from peakgate.client.imports.window import moment
    from peakgate.client.output import human_console, write_json
    from peakgate.hooks.slurm.journal import decisions
    from peakgate.hooks.slurm.report import judged_since, report_as_dict
    from peakgate.hooks.slurm.show_report import print_report
    from peakgate.hooks.slurm.stored import stored_lines

    require_store(server, db)
    start = moment(since, now=time.time())
    try:
        found = list(decisions(journal))
    except OSError as error:
        raise InputError(f"{journal}: {error.strerror}; --journal names the gate's", reason="FILE_UNREADABLE") from error
    with open_client(server, db) as client:
        judged = judged_since(found, since=start, look=stored_lines(client))
    if output is Output.table:
        print_report(human_console(output), judged)
    else:
        write_json(report_as_dict(judged), output)


@slurm.command()
def inventory(
    *, cards: Cards = CARDS_FILE, write: Write = False, server: Server = None, db: Database = None, output: OutputForm = Output.table
) -> None:
    """Shows the cluster's cards, how much memory each has and who says so. Exit status 1 when a card's memory is not known, or disputed."""
    from peakgate.client.output import error_console
    from peakgate.hooks.slurm.show_inventory import print_inventory
    from peakgate.hooks.slurm.stock import take_stock

    stock = take_stock(cards, server, db, lambda why: error_console().print(f"agents were not asked: {why}", markup=False))
    print_inventory(stock.found, output)
    if write:
        stock.write(cards)
    raise typer.Exit(1 if any(each.is_bad for each in stock.found) else 0)


@slurm.command()
def doctor(*, server: Server = None, cards: Cards = CARDS_FILE, socket: GateSocket = None, output: OutputForm = Output.table) -> None:
    """Checks the way of a submission, each step with its remedy: controller, hook, gate, service, agents. On the controller's host.

    Exit status 1 when something is wrong.
    """
    import os

    from peakgate.client.doctor.show import show
    from peakgate.hooks.slurm.doctor.run import slurm_checks

    checks = list(slurm_checks(cards=cards, server=server or os.environ.get("PEAKGATE_SERVER", ""), socket=socket))
    raise typer.Exit(show(checks, output))
