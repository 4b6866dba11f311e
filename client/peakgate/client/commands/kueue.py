"""`peakgate kueue`: judges workloads for Kueue, and lets them go when that is not possible."""

from __future__ import annotations

import os
import time
from typing import Annotated

import typer

from peakgate.client.errors import InputError, PeakgateError
from peakgate.client.extras import extra

kueue = typer.Typer(no_args_is_help=True, help="Judges workloads for Kueue on the flavor they were given (an AdmissionCheck).")

KueueServer = Annotated[str | None, typer.Option("--server", metavar="HOST:PORT", help="The service. Default: PEAKGATE_SERVER.")]
Namespace = Annotated[str, typer.Option("--namespace", metavar="NAME", envvar="POD_NAMESPACE", help="Of the Lease.")]
LeaseName = Annotated[str, typer.Option("--lease", metavar="NAME", help="The Lease by which one replica leads; it must exist.")]
Mode = Annotated[
    str, typer.Option("--mode", metavar="off|warn|enforce", help="Of checks whose annotation peakgate.io/mode does not say another one.")
]
Nodes = Annotated[bool, typer.Option("--nodes", help="Look at the nodes that a pod may run on (list nodes).")]
Claims = Annotated[bool, typer.Option("--claims", help="Look at claims of devices (list in resource.k8s.io).")]
MayJoin = Annotated[bool, typer.Option("--nodes-may-join", help="An autoscaler adds nodes of other kinds: never reject on today's alone.")]
KueueListen = Annotated[str, typer.Option("--listen", metavar="HOST", help="Where metrics and probes are served.")]
KueueMetricsPort = Annotated[
    int | None, typer.Option("--metrics-port", metavar="PORT", min=0, max=65535, help="Serve /metrics, /healthz and /readyz on this port.")
]
Context = Annotated[
    str | None, typer.Option("--context", metavar="NAME", help="Of the kubeconfig. Default: the pod's account, else the current one.")
]
Reason = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Stands in each workload's status.")]
Queue = Annotated[str, typer.Option("--cluster-queue", metavar="NAME", help="Only workloads of this ClusterQueue.")]
Every = Annotated[float, typer.Option("--every", metavar="SECONDS", min=0.0, help="Again and again, until it is stopped; 0: once.")]


@kueue.command()
def run(
    *,
    server: KueueServer = None,
    namespace: Namespace = "peakgate",
    lease: LeaseName = "peakgate-kueue",
    mode: Mode = "warn",
    nodes: Nodes = False,
    claims: Claims = False,
    nodes_may_join: MayJoin = False,
    listen: KueueListen = "127.0.0.1",
    metrics_port: KueueMetricsPort = None,
    context: Context = None,
) -> None:
    """Watches and decides until it is told to stop (SIGTERM or Ctrl-C)."""
    target = server or os.environ.get("PEAKGATE_SERVER", "")
    if not target:
        raise InputError("no service is named: give --server or set PEAKGATE_SERVER", reason="USAGE")
    with extra("kubernetes"):
        from peakgate.hooks.kubernetes.api import connected
        from peakgate.hooks.kubernetes.api_errors import ApiError
        from peakgate.hooks.kubernetes.kueue.checks import CheckMode
        from peakgate.hooks.kubernetes.kueue.cluster import Cluster
        from peakgate.hooks.kubernetes.kueue.run import KueueOptions, run_kueue
    if mode not in set(CheckMode):
        raise InputError(f"--mode is {mode!r}; allowed are {', '.join(CheckMode)}", reason="USAGE")
    options = KueueOptions(
        server=target,
        namespace=namespace,
        lease=lease,
        mode=CheckMode(mode),
        nodes=nodes,
        claims=claims,
        may_join=nodes_may_join,
        listen=None if metrics_port is None else (listen, metrics_port),
    )
    try:
        run_kueue(Cluster(connected(context)), options)
    except ApiError as error:
        raise PeakgateError(str(error), code="UNAVAILABLE", reason="API_SERVER") from error
    except OSError as error:
        raise InputError(f"--metrics-port {metrics_port} cannot be had: {error}", reason="USAGE") from error


@kueue.command()
def release(*, reason: Reason = "break-glass", cluster_queue: Queue = "", every: Every = 0.0, context: Context = None) -> None:
    """Sets every pending check of this controller Ready, so that the queue moves on unchecked: for when the controller is down."""
    with extra("kubernetes"):
        from peakgate.hooks.kubernetes.api import connected
        from peakgate.hooks.kubernetes.api_errors import ApiError
        from peakgate.hooks.kubernetes.kueue.cluster import Cluster
        from peakgate.hooks.kubernetes.kueue.release import release as released
    try:
        cluster = Cluster(connected(context))
    except ApiError as error:
        raise PeakgateError(str(error), code="UNAVAILABLE", reason="API_SERVER") from error
    while True:
        try:
            told = list(released(cluster, reason, cluster_queue=cluster_queue))
        except ApiError as error:
            if not every:
                raise PeakgateError(str(error), code="UNAVAILABLE", reason="API_SERVER") from error
            typer.echo(f"{error}; again in {every:g} s", err=True)  # the API server may be what is in trouble
            told = []
        for each in told:
            typer.echo(f"{each.workload} {each.check}: {each.problem or 'released'}")
        if not every:
            break
        time.sleep(every)
    if not told:
        typer.echo(f"nothing waits{f' in the ClusterQueue {cluster_queue}' if cluster_queue else ''}", err=True)
    if any(each.problem for each in told):
        raise typer.Exit(4)
