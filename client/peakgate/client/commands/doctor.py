"""`peakgate doctor`: what is wrong with this installation."""

from __future__ import annotations

import os
from collections.abc import Iterable
from itertools import chain
from typing import TYPE_CHECKING, Annotated

import typer

from peakgate.client.options import Database, Output, OutputForm, Server

if TYPE_CHECKING:
    from peakgate.client.doctor.check import Check

Selftest = Annotated[bool, typer.Option("--selftest", help="Instead: asks the GPUs of this node all that the agent relies on.")]
Simulate = Annotated[
    str | None,
    typer.Option(metavar="SCENARIO", help="With --selftest: a simulated NVML, such as healthy or errors, instead of this node's."),
]


def doctor(
    *,
    server: Server = None,
    db: Database = None,
    selftest: Selftest = False,
    simulate: Simulate = None,
    output: OutputForm = Output.table,
) -> None:
    """Checks packages, driver, service, database, clock and sockets, each with its remedy. Exit status 1 when something is wrong."""
    from peakgate.client.doctor.show import show
    from peakgate.client.errors import InputError

    if simulate and not selftest:
        raise InputError("--simulate needs --selftest: nothing else of this check-up asks NVML much", reason="USAGE")
    checks = list(_selftest_checks(simulate) if selftest else _installation_checks(server, db))
    raise typer.Exit(show(checks, output))


def _installation_checks(server: str | None, db: str | None) -> Iterable[Check]:
    from peakgate.client.doctor.node import node_checks
    from peakgate.client.doctor.packages import package_checks
    from peakgate.client.doctor.service import service_checks

    service = service_checks(server or os.environ.get("PEAKGATE_SERVER"), db or os.environ.get("PEAKGATE_DATABASE_URL"))
    return chain(package_checks(), node_checks(), service)


def _selftest_checks(simulate: str | None) -> Iterable[Check]:
    from peakgate.client.doctor.selftest import selftest_checks

    return selftest_checks(simulate)
