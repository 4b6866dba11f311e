"""`peakgate calibration list`, `show`, `promote` and `rollback`: versions of the margin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from peakgate.client.options import Database, Output, OutputForm, Server

if TYPE_CHECKING:
    from peakgate.v1.calibration_service_pb2 import Calibration, PromoteCalibrationResponse, RollbackCalibrationResponse

Limit = Annotated[int, typer.Option("--limit", "-n", min=1, help="At most so many, newest first.")]
All = Annotated[bool, typer.Option("--all", help="Every stored version, also those that are not kept for long.")]
Version = Annotated[str, typer.Argument(metavar="VERSION", help="A version's name, as `list` shows it.")]
AnyVersion = Annotated[str, typer.Argument(metavar="[VERSION]", help="A version's name. Default: the active one.")]
Force = Annotated[
    bool, typer.Option("--force", help="Promotes a shadow whose trial does not show yet that it is as good as the active one.")
]
Reason = Annotated[str, typer.Option(metavar="TEXT", help="Why, in one line, for the history.")]


def list_versions(
    *, limit: Limit = 50, every: All = False, server: Server = None, db: Database = None, output: OutputForm = Output.table
) -> None:
    """Lists versions of the margin, newest first: those of each day, of alarms and of switches, shadows, and the active one."""
    from peakgate.client.connect import open_client, require_store
    from peakgate.client.output import human_console, write_all
    from peakgate.client.render.calibrations import print_versions
    from peakgate.v1.document import answer_to_dict

    require_store(server, db)
    with open_client(server, db) as client:
        found = client.calibrations.versions(limit=limit, chosen_only=not every)
    if output is Output.table:
        print_versions(human_console(output), found)
    else:
        write_all([answer_to_dict(each) for each in found], output)


def show(*, version: AnyVersion = "", server: Server = None, db: Database = None, output: OutputForm = Output.table) -> None:
    """Shows what a version knows: its groups with their margins, levels that have moved, and whether it is trusted."""
    from peakgate.client.connect import open_client, require_store
    from peakgate.client.output import human_console, write_json
    from peakgate.client.render.calibrations import print_version
    from peakgate.v1.document import answer_to_dict

    require_store(server, db)
    with open_client(server, db) as client:
        found = client.calibrations.version(version)
    if output is Output.table:
        print_version(human_console(output), found)
    else:
        write_json(answer_to_dict(found), output)


def promote(
    *,
    version: Version,
    reason: Reason = "",
    force: Force = False,
    server: Server = None,
    db: Database = None,
    output: OutputForm = Output.table,
) -> None:
    """Makes a version the active one. What was observed and it does not know is set aside, until one that knows it is promoted.

    A shadow must have shown in its trial that it is as good, or --force is needed.
    """
    from peakgate.client.connect import open_client, require_store

    require_store(server, db)
    with open_client(server, db) as client:
        if not force:
            _require_shown(client.calibrations.version(version))
        switched = client.calibrations.promote(version, by=login(), reason=reason)
    _tell(switched, output)


def rollback(*, reason: Reason = "", server: Server = None, db: Database = None, output: OutputForm = Output.table) -> None:
    """Goes back to the newest version before the active one that is of a day, of an alarm or of a switch."""
    from peakgate.client.connect import open_client, require_store

    require_store(server, db)
    with open_client(server, db) as client:
        switched = client.calibrations.roll_back(by=login(), reason=reason)
    _tell(switched, output)


def _require_shown(version: Calibration) -> None:
    """Raises InputError for a shadow with a rule of promotion that does not hold."""
    from peakgate.client.errors import InputError
    from peakgate.client.render.trial import in_short

    if version.state == "shadow" and not all(rule.holds for rule in version.trial.rules):
        raise InputError(
            f"the trial of {version.version} has not shown that it is as good as the active version: {in_short(version.trial)}; "
            "wait for it, or promote it all the same with --force",
            reason="TRIAL_OPEN",
        )


def _tell(switched: PromoteCalibrationResponse | RollbackCalibrationResponse, output: Output) -> None:
    from peakgate.client.output import human_console, write_json
    from peakgate.client.render.calibrations import print_switch
    from peakgate.v1.document import answer_to_dict

    if output is Output.table:
        print_switch(human_console(output), switched)
    else:
        write_json(answer_to_dict(switched), output)


def login() -> str:
    """Who runs the command, for the history; empty when the system does not know."""
    import getpass

    try:
        return getpass.getuser()[:100]
    except (KeyError, OSError):  # a user without a name, as in a container (from Python 3.13 on OSError)
        return ""
