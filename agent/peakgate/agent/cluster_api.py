"""Reads of the Kubernetes API server with the pod's own service account, by the standard library alone."""

from __future__ import annotations

import http.client
import json
import os
import ssl
from collections.abc import Callable, Mapping
from pathlib import Path

from peakgate.agent.errors import ClusterApiError

ACCOUNT_FOLDER = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where every pod finds its token, which the kubelet renews, and the certificate of the API server's authority."""
TIMEOUT_SECONDS = 5.0
"""Of one read; the watch over pods is its only user, and asks again in a minute."""
MAX_ANSWER_BYTES = 32 << 20
"""A hundred ResourceSlices (one page) of 128 devices each (resource.k8s.io/v1, ResourceSliceMaxDevices) stay below it."""
NOT_FOUND = 404


class ClusterApi:
    """One connection a read; `connect` makes it and `token` reads the token anew."""

    def __init__(self, *, connect: Callable[[], http.client.HTTPConnection], token: Callable[[], str]) -> None:
        self._connect = connect
        self._token = token

    def get(self, path: str) -> Mapping[str, object] | None:
        """The JSON object at the path, None where there is none; raises ClusterApiError for all else."""
        try:
            status, body = self._read(path)
        except (OSError, http.client.HTTPException) as error:
            raise ClusterApiError(f"the API server cannot be read: {error}") from error
        if status == NOT_FOUND:
            return None
        if status != http.client.OK:
            raise ClusterApiError(f"the API server answers {status} for {path.partition('?')[0]}", remedy=_remedy(status))
        try:
            document = json.loads(body)
        except ValueError as error:
            raise ClusterApiError(f"the API server's answer for {path} is no JSON: {error}") from error
        if not isinstance(document, dict):
            raise ClusterApiError(f"the API server's answer for {path} is no JSON object")
        return document

    def _read(self, path: str) -> tuple[int, bytes]:
        connection = self._connect()
        try:
            connection.request("GET", path, headers={"Authorization": f"Bearer {self._token()}", "Accept": "application/json"})
            response = connection.getresponse()
            body = response.read(MAX_ANSWER_BYTES + 1)
        finally:
            connection.close()
        if len(body) > MAX_ANSWER_BYTES:
            raise ClusterApiError(f"the API server's answer for {path} is larger than {MAX_ANSWER_BYTES >> 20} MiB")
        return response.status, body


def own_cluster(*, environment: Mapping[str, str] = os.environ, folder: Path = ACCOUNT_FOLDER) -> ClusterApi | None:
    """The API server of the pod that this process runs in; None outside a pod."""
    host, port = environment.get("KUBERNETES_SERVICE_HOST"), environment.get("KUBERNETES_SERVICE_PORT", "443")
    if not (host and port.isdecimal() and (folder / "token").exists()):
        return None

    def connect() -> http.client.HTTPConnection:
        """Reads the authority's certificate anew as well: a cluster may renew it."""
        context = ssl.create_default_context(cafile=str(folder / "ca.crt"))
        return http.client.HTTPSConnection(host, int(port), timeout=TIMEOUT_SECONDS, context=context)

    return ClusterApi(connect=connect, token=lambda: (folder / "token").read_text(encoding="ascii").strip())


def _remedy(status: int) -> str:
    return "Allow the agent's service account to list resourceslices.resource.k8s.io" if status in (401, 403) else ""
