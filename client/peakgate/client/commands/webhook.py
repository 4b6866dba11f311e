"""`peakgate webhook`: judges workloads for a Kubernetes API server."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from peakgate.client.extras import extra
from peakgate.client.options import Server

Listen = Annotated[str, typer.Option("--listen", metavar="ADDRESS:PORT", help="Where the API server asks, by HTTPS.")]
MetricsPort = Annotated[
    int | None, typer.Option("--metrics-port", metavar="PORT", help="Serve /metrics, /healthz and /readyz on this port, by HTTP.")
]
CertDir = Annotated[
    Path | None, typer.Option("--cert-dir", metavar="FOLDER", help="Holds tls.crt and tls.key, which are read again when they change.")
]
SelfSigned = Annotated[
    list[str] | None,
    typer.Option(
        "--service",
        "--self-signed",
        metavar="NAME",
        help="Make certificates for this host name; kept in --cert-secret, else in --cert-dir. May be repeated.",
    ),
]
CertSecret = Annotated[
    str, typer.Option("--cert-secret", metavar="NAMESPACE/NAME", help="An existing Secret that keeps the certificates that are made here.")
]
Configuration = Annotated[
    str, typer.Option("--webhook-configuration", metavar="NAME", help="Keep its caBundle right, with certificates that are made here.")
]
Config = Annotated[
    Path | None,
    typer.Option("--config", metavar="FILE", help="Modes by namespace, and who may override (YAML); read again when it changes."),
]
ModeOption = Annotated[str, typer.Option("--mode", metavar="MODE", help="off, audit, warn or enforce, where no --config says another.")]
ReadCluster = Annotated[
    bool,
    typer.Option(
        "--read-cluster", help="Read config maps, training runtimes, claims of devices and labels of namespaces that a workload names."
    ),
]
Nodes = Annotated[bool, typer.Option("--nodes", help="List the cluster's nodes and ResourceSlices, to know which GPUs a workload may get.")]
MayJoin = Annotated[
    bool, typer.Option("--nodes-may-join/--no-nodes-may-join", help="An autoscaler adds nodes of other kinds: then fewer are denied.")
]
BesideToo = Annotated[
    bool, typer.Option("--beside/--no-beside", help="Run a service beside the webhook that judges, unrecorded, while the real one is away.")
]


def webhook(
    *,
    listen: Listen = "0.0.0.0:9443",
    metrics_port: MetricsPort = None,
    cert_dir: CertDir = None,
    service: SelfSigned = None,
    cert_secret: CertSecret = "",
    webhook_configuration: Configuration = "",
    server: Server = None,
    config: Config = None,
    mode: ModeOption = "warn",
    read_cluster: ReadCluster = False,
    nodes: Nodes = False,
    nodes_may_join: MayJoin = True,
    beside: BesideToo = True,
) -> None:
    """Judges workloads with GPUs for the Kubernetes API server until it is told to stop (SIGTERM or Ctrl-C)."""
    import os

    from peakgate.client.errors import InputError

    with extra("kubernetes"):
        from peakgate.hooks.kubernetes.main import run_webhook
        from peakgate.hooks.kubernetes.options import WebhookOptions
        from peakgate.hooks.kubernetes.rules import Mode
    host, _, port = listen.rpartition(":")
    if not (port.isascii() and port.isdigit() and int(port) < 1 << 16):
        raise InputError(f"--listen: {listen} is no ADDRESS:PORT", reason="USAGE")
    if mode not in set(Mode):
        raise InputError(f"--mode: {mode} is none of {', '.join(Mode)}", reason="USAGE")
    if cert_secret.count("/") != bool(cert_secret):
        raise InputError(f"--cert-secret: {cert_secret} is no NAMESPACE/NAME", reason="USAGE")
    options = WebhookOptions(
        host=host.strip("[]"),
        port=int(port),
        metrics_port=metrics_port,
        server=server or os.environ.get("PEAKGATE_SERVER", ""),
        certificates=cert_dir,
        own_hosts=tuple(service or ()),
        secret=cert_secret,
        configuration=webhook_configuration,
        config=config,
        mode=Mode(mode),
        reads_cluster=read_cluster,
        lists_nodes=nodes,
        nodes_may_join=nodes_may_join,
        beside=beside,
    )
    raise typer.Exit(run_webhook(options))
