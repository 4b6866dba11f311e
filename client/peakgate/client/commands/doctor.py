"""`peakgate doctor`: what is wrong with this installation."""

from __future__ import annotations

import os
from itertools import chain

import typer

from peakgate.client.options import Database, Output, OutputForm, Server


def doctor(*, server: Server = None, db: Database = None, output: OutputForm = Output.table) -> None:
    """Checks packages, driver, service, database, clock and sockets, each with its remedy. Exit status 1 when something is wrong."""
    from peakgate.client.doctor.check import State
    from peakgate.client.doctor.node import node_checks
    from peakgate.client.doctor.packages import package_checks
    from peakgate.client.doctor.service import service_checks
    from peakgate.client.output import human_console, write_json
    from peakgate.client.render.checks import print_checks
    from peakgate.v1.document import Plain

    service = service_checks(server or os.environ.get("PEAKGATE_SERVER"), db or os.environ.get("PEAKGATE_DATABASE_URL"))
    checks = list(chain(package_checks(), node_checks(), service))
    rows: list[Plain] = [{"name": each.name, "state": each.state.value, "found": each.found, "remedy": each.remedy} for each in checks]
    match output:
        case Output.table:
            print_checks(human_console(output), checks)
        case Output.json:
            write_json(rows, output)
        case Output.jsonl:
            for row in rows:
                write_json(row, output)
    raise typer.Exit(1 if any(each.state is State.bad for each in checks) else 0)
