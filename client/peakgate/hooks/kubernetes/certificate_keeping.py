"""Where an API server keeps our own certificates, and where it is told who signs them."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from kubernetes.client import ApiClient

from peakgate.hooks.kubernetes.api import JSON_PATCH, call
from peakgate.hooks.kubernetes.api_errors import CONFLICT, NOT_FOUND, ApiError
from peakgate.hooks.kubernetes.objects import at, mappings_at
from peakgate.hooks.kubernetes.own_certificates import ConflictError, StoreError

CONFIGURATIONS = ("validatingwebhookconfigurations", "mutatingwebhookconfigurations")


@dataclass(slots=True)
class SecretStore:
    """The four files in a Secret that exists already: it is read and replaced, never made or listed."""

    client: ApiClient
    namespace: str
    name: str
    _read: dict[str, Any] = field(default_factory=dict)

    def read(self) -> Mapping[str, bytes]:
        """What is there, by name. Raises StoreError."""
        with _told(f"the Secret {self.namespace}/{self.name} cannot be read"):
            self._read = call(self.client, "GET", self._path)
        data = self._read.get("data") or {}
        try:
            return {name: base64.b64decode(value) for name, value in data.items()}
        except (ValueError, TypeError) as error:
            raise StoreError(f"the Secret {self.namespace}/{self.name} holds no text in base64") from error

    def write(self, content: Mapping[str, bytes]) -> None:
        """Replaces what was last read. Raises ConflictError and StoreError."""
        body = {**self._read, "data": {name: base64.b64encode(value).decode() for name, value in content.items()}}
        with _told(f"the Secret {self.namespace}/{self.name} cannot be written"):
            call(self.client, "PUT", self._path, body)

    @property
    def _path(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/secrets/{self.name}"


@dataclass(frozen=True, slots=True)
class WebhookConfigurations:
    """Tells the API server which authority signs the webhook's certificate. A configuration that is not there is left out."""

    client: ApiClient
    name: str

    def announce(self, authority: bytes) -> bool:
        """Patches what has another one; whether anything was there. Raises StoreError."""
        wanted = base64.b64encode(authority).decode()
        were_there = [self._announce(resource, wanted) for resource in CONFIGURATIONS]
        return any(were_there)

    def _announce(self, resource: str, wanted: str) -> bool:
        path = f"/apis/admissionregistration.k8s.io/v1/{resource}/{self.name}"
        try:
            with _told(f"{resource}/{self.name} cannot be read"):
                found = call(self.client, "GET", path)
        except _AbsentError:
            return False
        patch = [
            {"op": "add", "path": f"/webhooks/{place}/clientConfig/caBundle", "value": wanted}
            for place, each in enumerate(mappings_at(found, "webhooks"))
            if at(each, "clientConfig", "caBundle") != wanted
        ]
        if patch:
            with _told(f"{resource}/{self.name} cannot be patched"):
                call(self.client, "PATCH", path, patch, content_type=JSON_PATCH)
        return True


class _AbsentError(StoreError):
    """There is no such object."""


@contextmanager
def _told(fault: str) -> Iterator[None]:
    try:
        yield
    except ApiError as error:
        if error.status == CONFLICT:
            raise ConflictError(fault) from error
        kind = _AbsentError if error.status == NOT_FOUND else StoreError
        raise kind(f"{fault}: {error}") from error
