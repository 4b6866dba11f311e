"""What the webhook is told when it starts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from peakgate.hooks.kubernetes.rules import Mode


class UsageError(Exception):
    """Options that do not go together, or something that is missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookOptions:
    """`certificates`: the folder with tls.crt and tls.key. `own_hosts`: make them ourselves, for these names; kept in the Secret
    `secret` (namespace/name), else in the folder. `configuration`: whose caBundle is then kept right. `config`: the file of modes."""

    host: str = "0.0.0.0"  # noqa: S104 - in a pod every address is the pod's
    port: int = 9443
    metrics_port: int | None = None
    server: str = ""
    certificates: Path | None = None
    own_hosts: tuple[str, ...] = ()
    secret: str = ""
    configuration: str = ""
    config: Path | None = None
    mode: Mode = Mode.warn
    reads_cluster: bool = False
    lists_nodes: bool = False
    nodes_may_join: bool = True
    beside: bool = True
