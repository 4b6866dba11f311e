"""The webhook's reads of the API server: what a workload names, and the cluster's cards."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kubernetes.client import ApiClient

from peakgate.hooks.kubernetes.api import call, listed
from peakgate.hooks.kubernetes.api_errors import ApiError
from peakgate.hooks.kubernetes.cluster import READ_SECONDS
from peakgate.hooks.kubernetes.objects import Object
from peakgate.hooks.kubernetes.references import CLAIMS, RUNTIMES

NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
"""A DNS subdomain (k8s.io/apimachinery pkg/util/validation, IsDNS1123Subdomain), more or less: no slash, and dots inside only."""

DEVICES, TRAINER = "/apis/resource.k8s.io/v1", "/apis/trainer.kubeflow.org/v1alpha1"


@dataclass(frozen=True, slots=True)
class KubernetesApi:
    """None: it is not there, or may not be read, or not in time."""

    client: ApiClient

    def config_map(self, namespace: str, name: str) -> Object | None:
        """One of core/v1."""
        return self._named("/api/v1/namespaces/{}/configmaps/{}", namespace, name)

    def runtime(self, namespace: str, kind: str, name: str) -> Object | None:
        """One of trainer.kubeflow.org; `namespace` is empty for one of the cluster."""
        place, names = ("namespaces/{}/", (namespace, name)) if namespace else ("", (name,))
        return self._named(f"{TRAINER}/{place}{RUNTIMES[kind]}/{{}}", *names)

    def claim(self, namespace: str, kind: str, name: str) -> Object | None:
        """A claim of devices, or a template of one, of resource.k8s.io."""
        return self._named(f"{DEVICES}/namespaces/{{}}/{CLAIMS[kind]}/{{}}", namespace, name)

    def device_class(self, name: str) -> Object | None:
        """One of resource.k8s.io."""
        return self._named(f"{DEVICES}/deviceclasses/{{}}", name)

    def namespace(self, name: str) -> Object | None:
        """One of core/v1."""
        return self._named("/api/v1/namespaces/{}", name)

    def nodes(self) -> Sequence[Object] | None:
        """All nodes."""
        return self._listed("/api/v1/nodes")

    def slices(self) -> Sequence[Object] | None:
        """All ResourceSlices."""
        return self._listed(f"{DEVICES}/resourceslices")

    def _listed(self, path: str) -> Sequence[Object] | None:
        try:
            return listed(self.client, path)[0]
        except ApiError:
            return None

    def _named(self, path: str, *names: str) -> Object | None:
        """One object. A workload of a kind of its own may name anything: what is no name never becomes a part of a path."""
        if not all(NAME.fullmatch(each) for each in names):
            return None
        try:
            found = call(self.client, "GET", path.format(*names), seconds=READ_SECONDS)
        except ApiError:
            return None
        return found if isinstance(found, Mapping) else None
