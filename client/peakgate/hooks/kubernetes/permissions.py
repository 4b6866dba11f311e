"""What the webhook asks of the API server, call by call: the roles in deploy/ grant this and nothing else."""

from __future__ import annotations

from dataclasses import dataclass

READS, NODES, CERTIFICATES = "--read-cluster", "--nodes", "--cert-secret"
"""For reviews, for the cards of the cluster, and for certificates of its own making."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Permission:
    """`verbs` on a resource. `is_named`: on one object by its name alone. `option`: only with this flag."""

    group: str
    resource: str
    verbs: tuple[str, ...]
    is_named: bool = False
    option: str = ""


PERMISSIONS = (
    Permission(group="", resource="configmaps", verbs=("get",), option=READS),
    Permission(group="", resource="namespaces", verbs=("get",), option=READS),
    Permission(group="trainer.kubeflow.org", resource="trainingruntimes", verbs=("get",), option=READS),
    Permission(group="trainer.kubeflow.org", resource="clustertrainingruntimes", verbs=("get",), option=READS),
    Permission(group="resource.k8s.io", resource="resourceclaimtemplates", verbs=("get",), option=READS),
    Permission(group="resource.k8s.io", resource="resourceclaims", verbs=("get",), option=READS),
    Permission(group="resource.k8s.io", resource="deviceclasses", verbs=("get",), option=READS),
    Permission(group="", resource="nodes", verbs=("list",), option=NODES),
    Permission(group="resource.k8s.io", resource="resourceslices", verbs=("list",), option=NODES),
    Permission(group="", resource="secrets", verbs=("get", "update"), option=CERTIFICATES, is_named=True),
    Permission(
        group="admissionregistration.k8s.io",
        resource="validatingwebhookconfigurations",
        verbs=("get", "patch"),
        option=CERTIFICATES,
        is_named=True,
    ),
    Permission(
        group="admissionregistration.k8s.io",
        resource="mutatingwebhookconfigurations",
        verbs=("get", "patch"),
        option=CERTIFICATES,
        is_named=True,
    ),
)
