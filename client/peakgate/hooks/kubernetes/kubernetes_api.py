"""The webhook's calls of the API server, by the official client: reads for the reviews, and what keeps its own certificates."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from kubernetes import client, config
from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError

from peakgate.hooks.kubernetes.admission import Object
from peakgate.hooks.kubernetes.cluster import (
    CLAIMS,
    DEVICE_GROUP,
    DEVICE_VERSION,
    READ_SECONDS,
    RUNTIMES,
    TRAINER_GROUP,
    TRAINER_VERSION,
)
from peakgate.hooks.kubernetes.facts import at, list_at
from peakgate.hooks.kubernetes.own_certificates import ConflictError, StoreError

WRITE_SECONDS = 10.0
PAGE = 500
"""Objects a list, as kubectl has it."""

CONFLICT, NOT_FOUND = 409, 404
NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
"""A DNS subdomain (k8s.io/apimachinery pkg/util/validation, IsDNS1123Subdomain), more or less: no slash, and dots inside only."""

DEVICES = f"/apis/{DEVICE_GROUP}/{DEVICE_VERSION}"


class NoClusterError(Exception):
    """No API server can be found, in words for an operator."""


def connected() -> Any:
    """A client of the cluster that this pod runs in, else of the one that KUBECONFIG names. Raises NoClusterError."""
    try:
        config.load_incluster_config()
    except config.ConfigException:
        try:
            config.load_kube_config()
        except (config.ConfigException, OSError, TypeError) as error:
            raise NoClusterError(f"neither a service account nor a kubeconfig is here: {error}") from error
    return client.ApiClient()


@dataclass(frozen=True, slots=True)
class KubernetesApi:
    """Reads for the reviews; see cluster.py."""

    calls: Any

    def config_map(self, namespace: str, name: str) -> Object | None:
        """One of core/v1."""
        return self._named("/api/v1/namespaces/{}/configmaps/{}", namespace, name)

    def runtime(self, namespace: str, kind: str, name: str) -> Object | None:
        """One of trainer.kubeflow.org."""
        place, names = ("namespaces/{}/", (namespace, name)) if namespace else ("", (name,))
        return self._named(f"/apis/{TRAINER_GROUP}/{TRAINER_VERSION}/{place}{RUNTIMES[kind]}/{{}}", *names)

    def claim(self, namespace: str, kind: str, name: str) -> Object | None:
        """One of resource.k8s.io."""
        return self._named(f"{DEVICES}/namespaces/{{}}/{CLAIMS[kind]}/{{}}", namespace, name)

    def device_class(self, name: str) -> Object | None:
        """One of resource.k8s.io."""
        return self._named(f"{DEVICES}/deviceclasses/{{}}", name)

    def namespace(self, name: str) -> Object | None:
        """One of core/v1."""
        return self._named("/api/v1/namespaces/{}", name)

    def nodes(self) -> Sequence[Object] | None:
        """All nodes; None: they cannot be listed now."""
        return self._listed("/api/v1/nodes")

    def slices(self) -> Sequence[Object] | None:
        """All ResourceSlices; None: they cannot be listed now, or the cluster has none of the kind."""
        return self._listed(f"{DEVICES}/resourceslices")

    def _listed(self, path: str) -> Sequence[Object] | None:
        """Some hundred at a time; None when a page is missing."""
        found: list[Object] = []
        token = ""
        while True:
            query = f"?limit={PAGE}" + (f"&continue={quote(token)}" if token else "")
            page = self._read(f"{path}{query}", seconds=WRITE_SECONDS)
            if page is None:
                return None
            found += list_at(page, "items")  # type: ignore[arg-type]  # items of a list of the API are objects
            token = str(at(page, "metadata", "continue") or "")
            if not token:
                return found

    def _named(self, path: str, *names: str) -> Object | None:
        """One object. A workload of a kind of its own may name anything: what is no name never becomes a part of a path."""
        return self._read(path.format(*names)) if all(NAME.fullmatch(each) for each in names) else None

    def _read(self, path: str, *, seconds: float = READ_SECONDS) -> Object | None:
        try:
            found = call(self.calls, "GET", path, seconds=seconds)
        except (ApiException, HTTPError, OSError, ValueError):
            return None
        return found if isinstance(found, Mapping) else None


@dataclass(slots=True)
class SecretStore:
    """The four files in a Secret that exists already: it is read and replaced, never made or listed."""

    calls: Any
    namespace: str
    name: str
    _read: dict[str, Any] = field(default_factory=dict)

    def read(self) -> Mapping[str, bytes]:
        """What is there, by name. Raises StoreError."""
        self._read = _told(lambda: call(self.calls, "GET", self._path), f"the Secret {self.namespace}/{self.name} cannot be read")
        data = self._read.get("data") or {}
        try:
            return {name: base64.b64decode(value) for name, value in data.items()}
        except (ValueError, TypeError) as error:
            raise StoreError(f"the Secret {self.namespace}/{self.name} holds no text in base64") from error

    def write(self, content: Mapping[str, bytes]) -> None:
        """Replaces what was last read. Raises ConflictError and StoreError."""
        body = {**self._read, "data": {name: base64.b64encode(value).decode() for name, value in content.items()}}
        _told(lambda: call(self.calls, "PUT", self._path, body), f"the Secret {self.namespace}/{self.name} cannot be written")

    @property
    def _path(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/secrets/{self.name}"


@dataclass(frozen=True, slots=True)
class WebhookConfigurations:
    """Tells the API server which authority signs the webhook's certificate. A configuration that is not there is left out."""

    calls: Any
    name: str

    def announce(self, authority: bytes) -> bool:
        """Patches what has another one; whether anything was there. Raises StoreError."""
        wanted, is_there = base64.b64encode(authority).decode(), False
        for resource in ("validatingwebhookconfigurations", "mutatingwebhookconfigurations"):
            path = f"/apis/admissionregistration.k8s.io/v1/{resource}/{self.name}"
            try:
                found = _told(lambda path=path: call(self.calls, "GET", path), f"{resource}/{self.name} cannot be read")  # type: ignore[misc]
            except _AbsentError:
                continue
            patch = [
                {"op": "add", "path": f"/webhooks/{place}/clientConfig/caBundle", "value": wanted}
                for place, each in enumerate(found.get("webhooks") or [])
                if each.get("clientConfig", {}).get("caBundle") != wanted
            ]
            if patch:
                _told(
                    lambda path=path, patch=patch: call(self.calls, "PATCH", path, patch),  # type: ignore[misc]
                    f"{resource}/{self.name} cannot be patched",
                )
            is_there = True
        return is_there


class _AbsentError(StoreError):
    """There is no such object."""


def call(calls: Any, method: str, path: str, body: object = None, *, seconds: float = WRITE_SECONDS) -> Any:
    """One call with JSON both ways. Raises ApiException, and urllib3's and the socket's errors."""
    headers = {"Accept": "application/json", "Content-Type": "application/json-patch+json" if method == "PATCH" else "application/json"}
    request = calls.param_serialize(method, path, header_params=headers, body=body, auth_settings=["BearerToken"])
    response = calls.call_api(*request, _request_timeout=seconds)
    text = response.read()
    if not HTTPStatus.OK <= response.status < HTTPStatus.MULTIPLE_CHOICES:
        raise ApiException(status=response.status, reason=response.reason)
    return json.loads(text)


def _told(ask: Callable[[], Any], fault: str) -> Any:
    try:
        return ask()
    except ApiException as error:
        if error.status == CONFLICT:
            raise ConflictError(fault) from error
        kind = _AbsentError if error.status == NOT_FOUND else StoreError
        raise kind(f"{fault}: the API server answers {error.status} {error.reason}") from error
    except (HTTPError, OSError, ValueError) as error:
        raise StoreError(f"{fault}: {error}") from error
