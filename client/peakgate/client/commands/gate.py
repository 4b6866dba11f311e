"""`peakgate gate`: judges submissions for a Slurm controller, on its host."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from peakgate.client.extras import extra

RULES = Path("/etc/peakgate/gate.yaml")

GateServer = Annotated[
    str | None,
    typer.Option("--server", metavar="HOST:PORT", help="The service. Default: PEAKGATE_SERVER, else only the one beside the gate judges."),
]
GateSocket = Annotated[Path, typer.Option("--socket", metavar="PATH", help="Where the controller's hook asks.")]
GateRules = Annotated[
    Path | None,
    typer.Option("--rules", metavar="FILE", help=f"Who is judged how (YAML), read again when it changes. Default: {RULES}, else shadow."),
]
GateCards = Annotated[Path, typer.Option("--cards", metavar="FILE", help="The table of cards, which `peakgate slurm inventory` writes.")]
GateJournal = Annotated[Path | None, typer.Option("--journal", metavar="FILE", help="One line of JSON a decision. Default: none.")]
GateMetricsPort = Annotated[
    int | None, typer.Option("--metrics-port", metavar="PORT", help="Serve Prometheus metrics on this port of the loopback address.")
]
AllowUser = Annotated[
    list[str] | None,
    typer.Option("--allow-user", metavar="NAME", help="Who may ask beside root and the gate's own user: SlurmUser. May be repeated."),
]
GateCluster = Annotated[str, typer.Option("--cluster", metavar="NAME", help="Where the controller does not say its own name.")]
BesideToo = Annotated[
    bool, typer.Option("--beside/--no-beside", help="Run a service beside the gate that judges, unrecorded, while the real one is away.")
]
Deadline = Annotated[
    float,
    typer.Option("--deadline", metavar="SECONDS", min=0.01, max=60.0, help="For the service's answer; the hook's budget is 0.1 s longer."),
]


def gate(
    *,
    server: GateServer = None,
    socket: GateSocket = Path("/run/peakgate-gate/gate.sock"),
    rules: GateRules = None,
    cards: GateCards = Path("/etc/peakgate/cards.yaml"),
    journal: GateJournal = None,
    metrics_port: GateMetricsPort = None,
    allow_user: AllowUser = None,
    cluster: GateCluster = "",
    beside: BesideToo = True,
    deadline: Deadline = 0.15,
) -> None:
    """Judges GPU jobs for Slurm's controller on this host until it is told to stop (SIGTERM or Ctrl-C)."""
    import os

    with extra("gate"):
        from peakgate.hooks.slurm.gate_main import GateOptions, run_gate
    options = GateOptions(
        socket=socket,
        server=server or os.environ.get("PEAKGATE_SERVER", ""),
        rules=rules or RULES,
        is_rules_needed=rules is not None,
        cards=cards,
        journal=journal,
        metrics_port=metrics_port,
        allow_users=tuple(allow_user or ()),
        cluster=cluster,
        beside=beside,
        deadline_seconds=deadline,
    )
    raise typer.Exit(run_gate(options))
