"""A real kube-apiserver with Debian's etcd on free loopback ports, for the one who has the program: PEAKGATE_KUBE_APISERVER names it."""

from __future__ import annotations

import contextlib
import json
import os
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from tests.bench.programs import free_port

from peakgate.hooks.kubernetes.issuing import make_authority, make_leaf

VARIABLE = "PEAKGATE_KUBE_APISERVER"
TOKENS = {"admin": "system:masters", "alice": "ml-team"}
START_SECONDS = 120.0
JSON = "application/json"


@dataclass(frozen=True)
class ApiServer:
    """Where it listens, and where its files lie."""

    port: int
    folder: Path

    def call(
        self, method: str, path: str, body: object = None, *, user: str = "admin", content_type: str = JSON
    ) -> tuple[int, dict[str, Any], list[str]]:
        """Status, object and warnings of one call."""
        headers = {"Authorization": f"Bearer token-of-{user}", "Content-Type": content_type, "Accept": JSON}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"https://127.0.0.1:{self.port}{path}", data, headers, method=method)
        context = ssl.create_default_context(cafile=str(self.folder / "ca.crt"))
        try:
            with urllib.request.urlopen(request, context=context, timeout=30) as answer:
                return answer.status, json.loads(answer.read() or b"{}"), answer.headers.get_all("Warning") or []
        except urllib.error.HTTPError as error:
            with error:
                return error.code, _object(error.read()), error.headers.get_all("Warning") or []

    def audit(self) -> list[dict[str, Any]]:
        """What its audit log holds."""
        return [json.loads(line) for line in (self.folder / "audit.log").read_text().splitlines()]


def _object(text: bytes) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        return {"message": text.decode(errors="replace")}
    return found if isinstance(found, dict) else {}


@contextlib.contextmanager
def api_server(folder: Path) -> Iterator[ApiServer]:
    """Runs both until the block ends."""
    _files(folder)
    etcd, peer, port = free_port(), free_port(), free_port()
    store = ["etcd", "--data-dir", str(folder / "etcd"), "--unsafe-no-fsync", *_etcd_addresses(etcd, peer)]
    server = [os.environ[VARIABLE], f"--etcd-servers=http://127.0.0.1:{etcd}", f"--secure-port={port}", *_server_options(folder)]
    with _process(store, folder / "etcd.log"), _process(server, folder / "apiserver.log") as process:
        found = ApiServer(port=port, folder=folder)
        _wait(found, process)
        yield found


def _files(folder: Path) -> None:
    now = datetime.now(UTC)
    authority = make_authority(now)
    leaf = make_leaf(authority, ["127.0.0.1", "localhost", "kubernetes.default.svc"], now)
    signer = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = serialization.Encoding.PEM
    private = signer.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    public = signer.public_key().public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo)
    texts = {"ca.crt": authority.certificate, "server.crt": leaf.certificate, "server.key": leaf.key, "sa.key": private, "sa.pub": public}
    for name, text in texts.items():
        (folder / name).write_bytes(text)
    (folder / "tokens.csv").write_text("".join(f'token-of-{user},{user},{user},"{group}"\n' for user, group in TOKENS.items()))
    rules = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "Metadata", "omitStages": ["RequestReceived"]}]}
    (folder / "audit.json").write_text(json.dumps(rules))


def _etcd_addresses(port: int, peer: int) -> list[str]:
    client, other = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{peer}"
    return [
        *("--listen-client-urls", client, "--advertise-client-urls", client, "--listen-peer-urls", other),
        *("--initial-advertise-peer-urls", other, "--initial-cluster", f"default={other}"),
    ]


def _server_options(folder: Path) -> list[str]:
    return [
        *("--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", "--service-cluster-ip-range=10.0.0.0/24"),
        *(f"--tls-cert-file={folder}/server.crt", f"--tls-private-key-file={folder}/server.key", "--authorization-mode=RBAC"),
        *(f"--token-auth-file={folder}/tokens.csv", f"--service-account-key-file={folder}/sa.pub"),
        *(f"--service-account-signing-key-file={folder}/sa.key", "--service-account-issuer=https://kubernetes.default.svc"),
        *("--disable-admission-plugins=ServiceAccount", f"--audit-policy-file={folder}/audit.json"),
        f"--audit-log-path={folder}/audit.log",
    ]


@contextlib.contextmanager
def _process(command: list[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait(server: ApiServer, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(OSError):
            if server.call("GET", "/api/v1/namespaces/default")[0] == 200:
                return
        time.sleep(0.5)
    raise RuntimeError(f"the API server does not start:\n{(server.folder / 'apiserver.log').read_text()[-2000:]}")


def a_definition(group: str, version: str, kind: str, plural: str) -> Mapping[str, Any]:
    """A CustomResourceDefinition that takes any spec."""
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}", "annotations": {"api-approved.kubernetes.io": "unapproved, a test's own"}},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind},
            "versions": [{"name": version, "served": True, "storage": True, "schema": schema}],
        },
    }
