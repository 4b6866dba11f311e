"""What the webhook asks of the API server, call by call: the roles in deploy/ grant this and nothing else."""

from __future__ import annotations

from dataclasses import dataclass

READS, NODES, CERTIFICATES = "reads", "nodes", "certificates"
"""For reviews (`--read-cluster`), for the cards of the cluster (`--nodes`), and for certificates of its own making (`--cert-secret`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Permission:
    """`named`: whether one object by its name is enough. `part`: what needs it."""

    group: str
    resource: str
    verbs: tuple[str, ...]
    part: str
    named: bool = False


PERMISSIONS: tuple[Permission, ...] = (
    Permission(group="", resource="configmaps", verbs=("get",), part=READS),
    Permission(group="", resource="namespaces", verbs=("get",), part=READS),
    Permission(group="trainer.kubeflow.org", resource="trainingruntimes", verbs=("get",), part=READS),
    Permission(group="trainer.kubeflow.org", resource="clustertrainingruntimes", verbs=("get",), part=READS),
    Permission(group="resource.k8s.io", resource="resourceclaimtemplates", verbs=("get",), part=READS),
    Permission(group="resource.k8s.io", resource="resourceclaims", verbs=("get",), part=READS),
    Permission(group="resource.k8s.io", resource="deviceclasses", verbs=("get",), part=READS),
    Permission(group="", resource="nodes", verbs=("list",), part=NODES),
    Permission(group="resource.k8s.io", resource="resourceslices", verbs=("list",), part=NODES),
    Permission(group="", resource="secrets", verbs=("get", "update"), part=CERTIFICATES, named=True),
    Permission(
        group="admissionregistration.k8s.io",
        resource="validatingwebhookconfigurations",
        verbs=("get", "patch"),
        part=CERTIFICATES,
        named=True,
    ),
    Permission(
        group="admissionregistration.k8s.io",
        resource="mutatingwebhookconfigurations",
        verbs=("get", "patch"),
        part=CERTIFICATES,
        named=True,
    ),
)
