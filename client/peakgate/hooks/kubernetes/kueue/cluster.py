"""The calls of the API server, by the official client (extra [kubernetes]); objects are JSON as they come."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol, cast

import urllib3
from kubernetes.client import ApiClient, ApisApi, Configuration, CoreV1Api, CustomObjectsApi
from kubernetes.client.exceptions import ApiException
from kubernetes.config import ConfigException, load_incluster_config, load_kube_config
from kubernetes.watch import Watch

from peakgate.hooks.kubernetes.kueue.errors import NOT_FOUND, ApiError
from peakgate.hooks.kubernetes.kueue.permissions import GROUP
from peakgate.hooks.kubernetes.objects import Object, at, list_at

VERSIONS = ("v1beta2", "v1beta1")
"""Of Kueue's API, the newest first; a server converts between them."""

DEVICES = ("resource.k8s.io", "v1")
PAGE = 500
WATCH_SECONDS = 300
TIMEOUT_SECONDS = 10.0
MERGE_PATCH = "application/merge-patch+json"
JSON = "application/json"


class Stream(Protocol):
    """A watch that can be ended from another thread."""

    def events(self) -> Iterator[tuple[str, Object]]:
        """(kind, object) of each event. Raises ApiError."""

    def stop(self) -> None:
        """Ends it."""


def connected(context: str | None = None) -> ApiClient:
    """A client with the pod's own account, else of the user's kubeconfig. Raises ApiError."""
    configuration = Configuration()
    try:
        if context is None:
            try:
                load_incluster_config(client_configuration=configuration)
                return ApiClient(configuration)
            except ConfigException:
                pass
        load_kube_config(context=context, client_configuration=configuration)
    except (ConfigException, OSError) as error:
        raise ApiError(f"no API server is named: neither a pod's account nor a kubeconfig ({error})") from error
    return ApiClient(configuration)


class Cluster:
    """What the controller needs of an API server. Every method raises ApiError."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client
        self._custom = CustomObjectsApi(client)
        self._version = ""

    def kueue_version(self) -> str:
        """The version of Kueue's API that both know."""
        if not self._version:
            with _raised():
                groups = ApisApi(self._client).get_api_versions(_request_timeout=TIMEOUT_SECONDS).groups
            served = {version.version for group in groups if group.name == GROUP for version in group.versions}
            self._version = next((each for each in VERSIONS if each in served), "")
        if not self._version:
            raise ApiError(f"the cluster serves none of {', '.join(VERSIONS)} of {GROUP}: is Kueue installed?", NOT_FOUND)
        return self._version

    def kueue(self, plural: str) -> tuple[list[Object], str]:
        """All objects of a kind of Kueue, and the version of the list."""
        return self._listed(GROUP, self.kueue_version(), plural)

    def nodes(self) -> list[Object]:
        """The nodes."""
        core = CoreV1Api(self._client)
        return self._pages(lambda following: json.loads(core.list_node(limit=PAGE, _continue=following, _preload_content=False).data))[0]

    def devices(self, plural: str) -> list[Object]:
        """All objects of a kind of dynamic resource allocation; none where the cluster has none."""
        try:
            return self._listed(*DEVICES, plural)[0]
        except ApiError as error:
            if error.status == NOT_FOUND:
                return []
            raise

    def watch(self, plural: str, version: str) -> Stream:
        """What changes in a kind of Kueue from a version on."""
        return _Stream(self._custom.list_cluster_custom_object, (GROUP, self.kueue_version(), plural), version)

    def workload(self, namespace: str, name: str) -> Object:
        """One workload."""
        with _raised():
            found = self._custom.get_namespaced_custom_object(
                GROUP, self.kueue_version(), namespace, "workloads", name, _request_timeout=TIMEOUT_SECONDS
            )
        return cast("Object", found)

    def patch_workload(self, namespace: str, name: str, patch: Object) -> None:
        """Merges into a workload's status."""
        with _raised():
            self._custom.patch_namespaced_custom_object_status(
                GROUP,
                self.kueue_version(),
                namespace,
                "workloads",
                name,
                dict(patch),
                _content_type=MERGE_PATCH,
                _request_timeout=TIMEOUT_SECONDS,
            )

    def patch_check(self, name: str, patch: Object) -> None:
        """Merges into an admission check's status."""
        with _raised():
            self._custom.patch_cluster_custom_object_status(
                GROUP,
                self.kueue_version(),
                "admissionchecks",
                name,
                dict(patch),
                _content_type=MERGE_PATCH,
                _request_timeout=TIMEOUT_SECONDS,
            )

    def lease(self, namespace: str, name: str) -> Object:
        """One Lease."""
        with _raised():
            found = self._custom.get_namespaced_custom_object(
                "coordination.k8s.io", "v1", namespace, "leases", name, _request_timeout=TIMEOUT_SECONDS
            )
        return cast("Object", found)

    def replace_lease(self, namespace: str, name: str, lease: Object) -> Object:
        """The Lease as it is then; a conflict when another was quicker."""
        with _raised():
            found = self._custom.replace_namespaced_custom_object(
                "coordination.k8s.io", "v1", namespace, "leases", name, dict(lease), _content_type=JSON, _request_timeout=TIMEOUT_SECONDS
            )
        return cast("Object", found)

    def _listed(self, group: str, version: str, plural: str) -> tuple[list[Object], str]:
        def page(following: str | None) -> Object:
            found = self._custom.list_cluster_custom_object(
                group, version, plural, limit=PAGE, _continue=following, _request_timeout=TIMEOUT_SECONDS
            )
            return cast("Object", found)

        return self._pages(page)

    def _pages(self, page: Callable[[str | None], Object]) -> tuple[list[Object], str]:
        found: list[Object] = []
        following: str | None = None
        while True:
            with _raised():
                part = page(following)
            found += [each for each in list_at(part, "items") if isinstance(each, Mapping)]
            following = str(at(part, "metadata", "continue") or "") or None
            if following is None:
                return found, str(at(part, "metadata", "resourceVersion") or "")


class _Stream:
    def __init__(self, listing: Callable[..., object], kind: tuple[str, str, str], version: str) -> None:
        self._watch = Watch()
        self._listing = listing
        self._kind = kind
        self._version = version

    def events(self) -> Iterator[tuple[str, Object]]:
        """(kind, object) of each event. Raises ApiError, also for an event of an error."""
        with _raised():
            for event in self._watch.stream(
                self._listing,
                *self._kind,
                resource_version=self._version,
                timeout_seconds=WATCH_SECONDS,
                allow_watch_bookmarks=True,
                _request_timeout=(TIMEOUT_SECONDS, WATCH_SECONDS + TIMEOUT_SECONDS),
            ):
                if event is not None:  # a line that is no JSON
                    yield event["type"], event["raw_object"]

    def stop(self) -> None:
        """Ends it."""
        self._watch.stop()


@contextmanager
def _raised() -> Iterator[None]:
    try:
        yield
    except ApiException as error:
        raise ApiError(f"{error.status} {error.reason}", error.status or 0) from error
    except (KeyError, TypeError, AttributeError) as error:  # the client's own, of an answer without the members that it wants
        raise ApiError(f"the API server's answer cannot be read: {type(error).__name__} {error}") from error
    except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
        raise ApiError(f"the API server does not answer: {type(error).__name__}") from error
