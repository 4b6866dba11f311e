"""`peakgate calibration`: what the margin has learned, and what it learns from."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from peakgate.client.commands import calibration_trials, calibration_versions
from peakgate.client.commands.calibration_history import export, simulate
from peakgate.client.options import Database, Output, OutputForm, Server

if TYPE_CHECKING:  # every verb's module is imported to be listed
    from peakgate.client.imports.job import ImportedJob

calibration = typer.Typer(no_args_is_help=True, help="What the margin has learned, and what it learns from.")
imports = typer.Typer(no_args_is_help=True, help="Takes in peaks that other tools recorded, in the lowest class of confidence.")
calibration.command("list")(calibration_versions.list_versions)
for _verb in (calibration_versions.show, calibration_versions.promote, calibration_versions.rollback):
    calibration.command()(_verb)
calibration.command()(calibration_trials.shadow)
calibration.command()(calibration_trials.quarantine)
calibration.command()(calibration_trials.release)
calibration.add_typer(imports, name="import")
calibration.command()(simulate)
calibration.command()(export)

File = Annotated[str, typer.Argument(metavar="FILE", help="Output of sacct --json or sacct -P; - for standard input.")]
Url = Annotated[str, typer.Argument(metavar="URL", help="Address of the Prometheus, such as http://prometheus:9090.")]
Jobs = Annotated[
    str | None, typer.Option("--jobs", metavar="FILE", help="Lines of JOB PREDICTION, where no comment says it (peakgate=<id>).")
]
JobsOrSacct = Annotated[
    str | None, typer.Option("--jobs", metavar="FILE", help="Lines of JOB PREDICTION, or sacct's output, which also says how jobs ended.")
]
Since = Annotated[str, typer.Option(metavar="TIME", help="Begin of the window: 7d ago, a time, or seconds since the epoch.")]
Until = Annotated[str, typer.Option(metavar="TIME", help="End of the window, in the same forms.")]
Step = Annotated[int, typer.Option(min=1, metavar="SECONDS", help="One point for each so many seconds: the highest sample of them.")]
Select = Annotated[str, typer.Option(metavar="MATCHERS", help='Which series, such as hpc_job!="",cluster="a". Default: all.')]
Cluster = Annotated[str, typer.Option(metavar="NAME", help="Name of the cluster that the jobs ran on.")]
Timeout = Annotated[float, typer.Option(min=0.1, metavar="SECONDS", help="How long one answer of Prometheus may take.")]

ReportSince = Annotated[str, typer.Option("--since", metavar="TIME", help="Begin: 30d ago, a time, or seconds since the epoch.")]
ReportUntil = Annotated[str, typer.Option("--until", metavar="TIME", help="End, in the same forms.")]
Group = Annotated[str, typer.Option(metavar="NAME", help="Only groups whose names begin with this.")]
Users = Annotated[bool, typer.Option("--users", help="Also name the users whose jobs are quarantined.")]
Html = Annotated[Path | None, typer.Option(metavar="FILE", help="Also writes one page with plots that needs no network.")]

PIECE_SECONDS = 86_400
"""Of a window that is asked for at once."""


@imports.command()
def sacct(*, file: File, jobs: Jobs = None, server: Server = None, db: Database = None, output: OutputForm = Output.table) -> None:
    """Takes GPU memory peaks out of Slurm's accounting (gres/gpumem). A second run changes nothing."""
    from peakgate.client.imports.files import read_job_list, read_text
    from peakgate.client.imports.sacct import read_sacct

    mapping = read_job_list(jobs).predictions
    _deliver(read_sacct(read_text(file), where=file, mapping=mapping), server=server, db=db, output=output)


@imports.command()
def prometheus(
    *,
    url: Url,
    since: Since = "7d",
    until: Until = "0s",
    step: Step = 60,
    select: Select = "",
    cluster: Cluster = "default",
    jobs: JobsOrSacct = None,
    timeout: Timeout = 30.0,
    server: Server = None,
    db: Database = None,
    output: OutputForm = Output.table,
) -> None:
    """Takes GPU memory peaks out of a Prometheus (DCGM_FI_DEV_FB_USED). A second run changes nothing."""
    import time

    from peakgate.client.imports.files import read_job_list
    from peakgate.client.imports.prometheus import jobs_of, query
    from peakgate.client.imports.prometheus_http import query_range
    from peakgate.client.imports.window import window

    known = read_job_list(jobs)
    start, end = window(since, until, step_seconds=step, now=time.time())
    series = query_range(
        url,
        query(select, step),
        start=start,
        end=end,
        step_seconds=step,
        window_seconds=PIECE_SECONDS // step * step or step,
        timeout_seconds=timeout,
    )
    found = jobs_of(series, cluster=cluster, until=end, step_seconds=step, predictions=known.predictions, ends=known.ends)
    _deliver(found, server=server, db=db, output=output)


@calibration.command()
def report(
    *,
    since: ReportSince = "30d",
    until: ReportUntil = "0s",
    group: Group = "",
    users: Users = False,
    html: Html = None,
    server: Server = None,
    db: Database = None,
    output: OutputForm = Output.table,
) -> None:
    """Says whether the margin can be trusted: needs against the bounds that were given, rejections, alarms, what the facts rest on."""
    import time

    from peakgate.client.connect import open_client, require_store
    from peakgate.client.imports.window import window
    from peakgate.client.output import human_console, write_json
    from peakgate.client.render.audit import print_audit
    from peakgate.client.render.audit_page import audit_page
    from peakgate.client.render.page import write_html
    from peakgate.v1.calibration_report_pb2 import ReportCalibrationRequest
    from peakgate.v1.document import answer_to_dict
    from peakgate.v1.times import timestamp

    require_store(server, db)
    start, end = window(since, until, step_seconds=1, now=time.time())
    request = ReportCalibrationRequest(since_time=timestamp(start), until_time=timestamp(end + 1), group=group, users=users)
    with open_client(server, db) as client:
        found = client.calibrations.report(request)
    if html is not None:
        write_html(html, audit_page(found))  # before anything is printed: whoever reads only the first lines has the page all the same
    console = human_console(output)
    if output is Output.table:
        print_audit(console, found)
    else:
        write_json(answer_to_dict(found), output)
    if html is not None:
        console.print(f"\n  Page written to {html}", soft_wrap=True, markup=False)


def _deliver(jobs: Iterable[ImportedJob], *, server: str | None, db: str | None, output: Output) -> None:
    from peakgate.client.connect import open_client, require_store
    from peakgate.client.imports.deliver import deliver
    from peakgate.client.output import human_console, write_all
    from peakgate.client.render.imports import import_as_dict, print_imports

    require_store(server, db)
    with open_client(server, db) as client:
        imported = list(deliver(client, jobs))
    if output is Output.table:
        print_imports(human_console(output), imported)
    else:
        write_all([import_as_dict(each) for each in imported], output)
