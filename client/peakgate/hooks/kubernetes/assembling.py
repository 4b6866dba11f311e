"""The webhook's parts from its options. Where none asks for the API server, its client is not loaded."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Executor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from peakgate.hooks.kubernetes.api_errors import ApiError
from peakgate.hooks.kubernetes.certificates import LiveCertificate
from peakgate.hooks.kubernetes.cluster import ApiCluster, Cluster, NoCluster
from peakgate.hooks.kubernetes.inventory import Inventory
from peakgate.hooks.kubernetes.metrics import WebhookMetrics
from peakgate.hooks.kubernetes.options import UsageError, WebhookOptions
from peakgate.hooks.kubernetes.own_certificates import FolderStore, OwnCertificates
from peakgate.hooks.kubernetes.rules import Rules
from peakgate.hooks.live_file import LiveFile
from peakgate.hooks.program import tell
from peakgate.hooks.rules_file import RulesError, read_rules

if TYPE_CHECKING:  # of the extra [kubernetes], and slow to load
    from kubernetes.client import ApiClient


def rules_file(options: WebhookOptions) -> LiveFile[Rules] | None:
    """None where no file is named: then `mode` holds everywhere. Raises RulesError."""
    return LiveFile(options.config, partial(read_rules, model=Rules), tell, fault=RulesError) if options.config is not None else None


def cluster_of(options: WebhookOptions, executor: Executor) -> Cluster:
    """Raises UsageError."""
    if not options.reads_cluster:
        return NoCluster()
    from peakgate.hooks.kubernetes.kubernetes_api import KubernetesApi

    return ApiCluster(api=KubernetesApi(_client("--read-cluster")), executor=executor, tell=tell)


def inventory_of(options: WebhookOptions, catalogue: Callable[[], Awaitable[Mapping[str, int]]]) -> Inventory:
    """Raises UsageError."""
    nodes = None
    if options.lists_nodes:
        from peakgate.hooks.kubernetes.kubernetes_api import KubernetesApi

        nodes = KubernetesApi(_client("--nodes"))
    return Inventory(nodes=nodes, may_join=options.nodes_may_join, catalogue=catalogue, tell=tell)


def own_certificates(options: WebhookOptions, scratch: Path) -> OwnCertificates | None:
    """Made and announced before anybody listens; None where others make them. Raises UsageError and StoreError."""
    if not options.own_hosts:
        return None
    folder = options.certificates if options.certificates is not None and not options.secret else scratch / "tls"
    own = OwnCertificates(store=FolderStore(folder), folder=folder, hosts=options.own_hosts, tell=tell)
    if options.secret or options.configuration:
        from peakgate.hooks.kubernetes.certificate_keeping import SecretStore, WebhookConfigurations

        client = _client("--cert-secret" if options.secret else "--webhook-configuration")
        if options.secret:
            namespace, _, name = options.secret.partition("/")
            own.store = SecretStore(client, namespace, name)
        if options.configuration:
            own.announce = WebhookConfigurations(client, options.configuration).announce
    own.begin()
    return own


def certificate_of(options: WebhookOptions, own: OwnCertificates | None, metrics: WebhookMetrics) -> LiveCertificate:
    """What the listener shows. Raises UsageError and CertificateError."""
    folder = own.folder if own is not None else options.certificates
    if folder is None:
        raise UsageError("no certificate: name a folder with --cert-dir, or have one made with --self-signed")
    return LiveCertificate(folder=folder, tell=tell, on_reload=lambda outcome: metrics.reloads.labels(outcome).inc())


def _client(option: str) -> ApiClient:
    from peakgate.hooks.kubernetes.api import connected

    try:
        return connected()
    except ApiError as error:
        raise UsageError(f"{option}: {error}") from error
