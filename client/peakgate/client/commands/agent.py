"""`peakgate agent`: watches the GPUs of this node."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from peakgate.client.extras import extra


class Transport(StrEnum):
    """How peaks are sent."""

    stream = "stream"
    unary = "unary"


AgentServer = Annotated[str, typer.Option(metavar="HOST:PORT", envvar="PEAKGATE_SERVER", help="The service that takes the peaks.")]
Simulate = Annotated[
    str | None, typer.Option(metavar="SCENARIO", help="A simulated NVML: a scenario's name or path, then ,VARIABLE=VALUE.")
]
NodeName = Annotated[str | None, typer.Option(metavar="NAME", help="Name of this node. Default: the host's.")]
Cluster = Annotated[str, typer.Option(metavar="NAME", help="Name of the cluster.")]
Spool = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Where peaks wait until they are acknowledged. Default: the user's state folder.")
]
Once = Annotated[bool, typer.Option("--once", help="One sample, sent, and out.")]
Duration = Annotated[
    float | None, typer.Option("--duration", metavar="SECONDS", help="Stop after so long. Default: run until told to stop.")
]
TransportForm = Annotated[Transport, typer.Option(help="One stream, or a call a batch.")]
MetricsPort = Annotated[
    int | None, typer.Option(metavar="PORT", help="Serve the agent's own metrics there (9552 by custom). Default: not at all.")
]
Interval = Annotated[float, typer.Option("--interval", metavar="SECONDS", help="Time between two batches; the end of a job goes at once.")]

HelperSocket = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Socket for trainings that report themselves. Default: /run/peakgate/agent.sock; none in a simulation."
    ),
]


def agent(
    *,
    server: AgentServer = "127.0.0.1:50551",
    simulate: Simulate = None,
    node: NodeName = None,
    cluster: Cluster = "default",
    spool: Spool = None,
    once: Once = False,
    duration: Duration = None,
    transport: TransportForm = Transport.unary,
    metrics_port: MetricsPort = None,
    interval: Interval = 30.0,
    helper_socket: HelperSocket = None,
) -> None:
    """Reports the highest GPU memory of each job on this node."""
    with extra("agent"):
        from peakgate.agent.main import run_agent
    raise typer.Exit(
        run_agent(
            server=server,
            simulate=simulate,
            node=node,
            cluster=cluster,
            spool=spool,
            once=once,
            duration_seconds=duration,
            transport=transport.value,
            metrics_port=metrics_port,
            interval_seconds=interval,
            helper_socket=helper_socket,
        )
    )
