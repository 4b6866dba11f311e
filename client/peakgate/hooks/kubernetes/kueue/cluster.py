"""What the controller needs of an API server; objects are JSON as they come."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol, cast

from kubernetes.client import ApiClient, CustomObjectsApi
from kubernetes.watch import Watch

from peakgate.hooks.kubernetes.api import MERGE_PATCH, SECONDS, call, listed, raised
from peakgate.hooks.kubernetes.api_errors import NOT_FOUND, ApiError
from peakgate.hooks.kubernetes.kueue.permissions import GROUP
from peakgate.hooks.kubernetes.objects import Object, mappings_at, text_at

VERSIONS = ("v1beta2", "v1beta1")
"""Of Kueue's API, the newest first; a server converts between them."""

WATCH_SECONDS = 300


class Stream(Protocol):
    """A watch that can be ended from another thread."""

    def events(self) -> Iterator[tuple[str, Object]]:
        """(kind, object) of each event. Raises ApiError."""

    def stop(self) -> None:
        """Ends it."""


class Cluster:
    """Every method raises ApiError."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client
        self._version = ""

    def kueue_version(self) -> str:
        """The version of Kueue's API that both know."""
        if not self._version:
            groups = mappings_at(call(self._client, "GET", "/apis"), "groups")
            versions = (each for group in groups if group.get("name") == GROUP for each in mappings_at(group, "versions"))
            served = {text_at(each, "version") for each in versions}
            self._version = next((each for each in VERSIONS if each in served), "")
        if not self._version:
            raise ApiError(f"the cluster serves none of {', '.join(VERSIONS)} of {GROUP}: is Kueue installed?", NOT_FOUND)
        return self._version

    def kueue(self, plural: str) -> tuple[list[Object], str]:
        """All objects of a kind of Kueue, and the version of the list."""
        return listed(self._client, f"{self._kueue_path}/{plural}")

    def nodes(self) -> list[Object]:
        """The nodes."""
        return listed(self._client, "/api/v1/nodes")[0]

    def devices(self, plural: str) -> list[Object]:
        """All objects of a kind of dynamic resource allocation; none where the cluster has none."""
        try:
            return listed(self._client, f"/apis/resource.k8s.io/v1/{plural}")[0]
        except ApiError as error:
            if error.status == NOT_FOUND:
                return []
            raise

    def watch(self, plural: str, version: str) -> Stream:
        """What changes in a kind of Kueue from a version on."""
        return _Stream(CustomObjectsApi(self._client).list_cluster_custom_object, (GROUP, self.kueue_version(), plural), version)

    def workload(self, namespace: str, name: str) -> Object:
        """One workload."""
        return cast("Object", call(self._client, "GET", self._workload_path(namespace, name)))

    def patch_workload(self, namespace: str, name: str, patch: Object) -> None:
        """Merges into a workload's status."""
        call(self._client, "PATCH", f"{self._workload_path(namespace, name)}/status", patch, content_type=MERGE_PATCH)

    def patch_check(self, name: str, patch: Object) -> None:
        """Merges into an admission check's status."""
        call(self._client, "PATCH", f"{self._kueue_path}/admissionchecks/{name}/status", patch, content_type=MERGE_PATCH)

    def lease(self, namespace: str, name: str) -> Object:
        """One Lease."""
        return cast("Object", call(self._client, "GET", _lease_path(namespace, name)))

    def replace_lease(self, namespace: str, name: str, lease: Object) -> Object:
        """The Lease as it is then; a conflict when another was quicker."""
        return cast("Object", call(self._client, "PUT", _lease_path(namespace, name), lease))

    @property
    def _kueue_path(self) -> str:
        return f"/apis/{GROUP}/{self.kueue_version()}"

    def _workload_path(self, namespace: str, name: str) -> str:
        return f"{self._kueue_path}/namespaces/{namespace}/workloads/{name}"


def _lease_path(namespace: str, name: str) -> str:
    return f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}"


class _Stream:
    def __init__(self, listing: Callable[..., object], kind: tuple[str, str, str], version: str) -> None:
        self._watch = Watch()
        self._listing = listing
        self._kind = kind
        self._version = version

    def events(self) -> Iterator[tuple[str, Object]]:
        """(kind, object) of each event. Raises ApiError, also for an event of an error."""
        with raised():
            for event in self._watch.stream(
                self._listing,
                *self._kind,
                resource_version=self._version,
                timeout_seconds=WATCH_SECONDS,
                allow_watch_bookmarks=True,
                _request_timeout=(SECONDS, WATCH_SECONDS + SECONDS),
            ):
                if event is not None:  # a line that is no JSON
                    yield event["type"], event["raw_object"]

    def stop(self) -> None:
        """Ends it."""
        self._watch.stop()
