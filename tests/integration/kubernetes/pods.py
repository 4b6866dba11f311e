"""What runs, out of rendered objects: each workload's pod template in one form."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.integration.kubernetes.charts import NAMESPACE, Manifest

WORKLOADS = frozenset({"Deployment", "DaemonSet", "Job"})
CLUSTER_WIDE = frozenset(
    {
        "Namespace",
        "ClusterRole",
        "ClusterRoleBinding",
        "ValidatingWebhookConfiguration",
        "MutatingWebhookConfiguration",
        "AdmissionCheck",
    }
)
Labels = Mapping[str, str]


@dataclass(frozen=True)
class Workload:
    """A Deployment, DaemonSet or Job."""

    object: Manifest
    namespace: str

    @property
    def name(self) -> str:
        """`Kind name`, for messages."""
        return f"{self.object['kind']} {self.object['metadata']['name']}"

    @property
    def component(self) -> str:
        """server, webhook and so on."""
        return str(self.labels["app.kubernetes.io/component"])

    @property
    def labels(self) -> Labels:
        """Of its pods."""
        found: Labels = self.object["spec"]["template"]["metadata"]["labels"]
        return found

    @property
    def pod(self) -> Mapping[str, Any]:
        """The pod's spec."""
        found: Mapping[str, Any] = self.object["spec"]["template"]["spec"]
        return found

    @property
    def containers(self) -> list[Mapping[str, Any]]:
        """All of them, those that only prepare as well."""
        return [*self.pod.get("initContainers", []), *self.pod["containers"]]

    @property
    def ports(self) -> dict[str, int]:
        """Container ports by name."""
        return {port.get("name", ""): port["containerPort"] for each in self.containers for port in each.get("ports", [])}


def namespace_of(manifest: Manifest) -> str:
    """Where an object is; one that does not say is in the release's namespace."""
    return str(manifest["metadata"].get("namespace", NAMESPACE))


def workloads(objects: Sequence[Manifest]) -> list[Workload]:
    """Everything that runs pods."""
    return [Workload(each, namespace_of(each)) for each in objects if each["kind"] in WORKLOADS]


def of_kind(objects: Sequence[Manifest], *kinds: str) -> Iterator[Manifest]:
    """The objects of some kinds."""
    return (each for each in objects if each["kind"] in kinds)


def selects(selector: Labels, labels: Labels) -> bool:
    """Whether a set of labels has all that a selector asks for; an empty selector would take every pod, which is never meant here."""
    return bool(selector) and selector.items() <= labels.items()


def label(manifest: Manifest) -> str:
    """`Kind name`."""
    return f"{manifest['kind']} {manifest['metadata']['name']}"
