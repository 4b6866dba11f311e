"""`peakgate calibration shadow`, `quarantine` and `release`: what learns on trial, and what was kept out."""

from __future__ import annotations

from typing import Annotated

import typer

from peakgate.client.commands.calibration_versions import login
from peakgate.client.options import Database, Output, OutputForm, Server

From = Annotated[
    str, typer.Option("--from", metavar="VERSION", help="A version to start from. Default: everything that was observed is learned again.")
]
Stop = Annotated[bool, typer.Option("--stop", help="Ends the shadow that there is.")]
Limit = Annotated[int, typer.Option("--limit", "-n", min=1, help="At most so many, newest first.")]
Group = Annotated[str, typer.Option(metavar="GROUP", help="Only of this group.")]
ReasonWord = Annotated[str, typer.Option("--reason", metavar="WORD", help="Only with this reason word, such as FAR_ABOVE_PREDICTION.")]
Prediction = Annotated[str, typer.Argument(metavar="PREDICTION", help="Its name, predictions/…, as `quarantine` shows it.")]
Job = Annotated[str, typer.Option(metavar="ID", help="Which job, where several of the prediction were kept out.")]
Restart = Annotated[int | None, typer.Option(min=0, metavar="N", help="Which attempt of the job, where several were kept out.")]
Why = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why its figures are right, for the history.")]


def shadow(
    *, version: From = "", stop: Stop = False, server: Server = None, db: Database = None, output: OutputForm = Output.table
) -> None:
    """Starts a version that learns beside the active one and answers nobody; it is promoted when its trial says so."""
    from peakgate.client.connect import open_client, require_store
    from peakgate.client.errors import InputError
    from peakgate.client.output import human_console, write_json
    from peakgate.client.render.calibrations import print_version
    from peakgate.v1.document import answer_to_dict

    if stop and version:
        raise InputError("--stop and --from exclude each other: there is one shadow at most", reason="USAGE")
    require_store(server, db)
    with open_client(server, db) as client:
        found = client.calibrations.end_shadow() if stop else client.calibrations.shadow(version)
    if output is Output.table:
        print_version(human_console(output), found)
    else:
        write_json(answer_to_dict(found), output)


def quarantine(
    *,
    limit: Limit = 50,
    group: Group = "",
    reason: ReasonWord = "",
    server: Server = None,
    db: Database = None,
    output: OutputForm = Output.table,
) -> None:
    """Lists observations that were kept out, newest first, each with its reason."""
    from peakgate.client.connect import open_client, require_store
    from peakgate.client.output import human_console, write_all
    from peakgate.client.render.quarantine import print_quarantine
    from peakgate.v1.document import answer_to_dict

    require_store(server, db)
    with open_client(server, db) as client:
        found = client.calibrations.quarantine(limit=limit, group=group, reason=reason.upper())
    if output is Output.table:
        print_quarantine(human_console(output), found, group=group, reason=reason.upper())
    else:
        write_all([answer_to_dict(each) for each in found], output)


def release(
    *,
    prediction: Prediction,
    reason: Why,
    job: Job = "",
    restart: Restart = None,
    server: Server = None,
    db: Database = None,
    output: OutputForm = Output.table,
) -> None:
    """Lets an observation that was kept out be learned where it belongs: its size and its user keep it out no longer."""
    from peakgate.client.connect import open_client, require_store
    from peakgate.client.output import human_console, write_json
    from peakgate.client.render.quarantine import print_release
    from peakgate.v1.calibration_service_pb2 import ReleaseObservationRequest
    from peakgate.v1.document import answer_to_dict

    require_store(server, db)
    request = ReleaseObservationRequest(prediction=prediction, job=job, who=login(), why=reason)
    if restart is not None:
        request.restart = restart
    with open_client(server, db) as client:
        done = client.calibrations.release(request)
    if output is Output.table:
        print_release(human_console(output), prediction, done)
    else:
        write_json(answer_to_dict(done), output)
