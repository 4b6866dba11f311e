"""A real kube-apiserver with Debian's etcd on free loopback ports, for the one who has the program: PEAKGATE_KUBE_APISERVER names it."""

from __future__ import annotations

import contextlib
import gzip
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

import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from tests.bench.programs import ROOT, free_port

from peakgate.hooks.kubernetes.issuing import make_authority, make_leaf

VARIABLE = "PEAKGATE_KUBE_APISERVER"
TOKENS = {"admin": "system:masters", "alice": "ml-team"}
START_SECONDS = 120.0
JSON, MERGE_PATCH = "application/json", "application/merge-patch+json"
WITHOUT_ACCOUNTS = ("--disable-admission-plugins=ServiceAccount",)
"""Pods need no service account, which without a controller manager nobody makes."""

KUEUE_CRDS, OPERATOR_SCHEMAS = ROOT / "tests/golden/kueue_crds.jsonl.gz", ROOT / "tests/golden/kubernetes_crds.jsonl"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@dataclass(frozen=True)
class ApiServer:
    """Where it listens, and where its files lie."""

    port: int
    folder: Path

    @property
    def address(self) -> str:
        """Its URL."""
        return f"https://127.0.0.1:{self.port}"

    def call(
        self, method: str, path: str, body: object = None, *, user: str = "admin", content_type: str = JSON
    ) -> tuple[int, dict[str, Any], list[str]]:
        """Status, object and warnings of one call."""
        headers = {"Authorization": f"Bearer token-of-{user}", "Content-Type": content_type, "Accept": JSON}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.address}{path}", data, headers, method=method)
        context = ssl.create_default_context(cafile=str(self.folder / "ca.crt"))
        try:
            with urllib.request.urlopen(request, context=context, timeout=30) as answer:
                return answer.status, json.loads(answer.read() or b"{}"), answer.headers.get_all("Warning") or []
        except urllib.error.HTTPError as error:
            with error:
                return error.code, _object(error.read()), error.headers.get_all("Warning") or []

    def must(self, method: str, path: str, body: object = None, *, content_type: str = JSON) -> dict[str, Any]:
        """The object of a call that has to succeed."""
        status, found, _ = self.call(method, path, body, content_type=content_type)
        if status >= 300:
            raise RuntimeError(f"{method} {path}: {status} {found.get('message', found)}")
        return found

    def define(self, *definitions: Mapping[str, Any]) -> None:
        """Makes kinds, and waits until they are served."""
        for each in definitions:
            self.must("POST", DEFINITIONS, each)
        for each in definitions:
            path = f"{DEFINITIONS}/{each['metadata']['name']}"
            wait_until(lambda path=path: is_true(self.must("GET", path), "Established"), f"{path} is served")

    def audit(self) -> list[dict[str, Any]]:
        """What its audit log holds, in whole lines: it writes while this reads."""
        whole, _, _ = (self.folder / "audit.log").read_text().rpartition("\n")
        return [json.loads(line) for line in whole.splitlines()]

    def kubeconfig(self, path: Path, **user: str) -> Path:
        """Writes one for whoever these words name (`token`, or `tokenFile`)."""
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "here",
            "clusters": [{"name": "here", "cluster": {"server": self.address, "certificate-authority": str(self.folder / "ca.crt")}}],
            "users": [{"name": "somebody", "user": user}],
            "contexts": [{"name": "here", "context": {"cluster": "here", "user": "somebody"}}],
        }
        path.write_text(yaml.safe_dump(document))
        return path


def is_true(item: Mapping[str, Any], condition: str) -> bool:
    """Whether an object says so in its status."""
    found = item.get("status", {}).get("conditions") or []
    return any((each["type"], each["status"]) == (condition, "True") for each in found)


def wait_until(is_so: Any, what: str, seconds: float = 60.0) -> None:
    """Raises RuntimeError when it does not become so."""
    deadline = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > deadline:
            raise RuntimeError(f"not within {seconds:.0f} s: {what}")
        time.sleep(0.1)


def _object(text: bytes) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        return {"message": text.decode(errors="replace")}
    return found if isinstance(found, dict) else {}


@contextlib.contextmanager
def api_server(folder: Path, *options: str) -> Iterator[ApiServer]:
    """Runs both until the block ends. `options`: more of the API server's, else none asks for service accounts."""
    _files(folder)
    etcd, peer, port = free_port(), free_port(), free_port()
    store = ["etcd", "--data-dir", str(folder / "etcd"), "--unsafe-no-fsync", *_etcd_addresses(etcd, peer)]
    told = [*_server_options(folder), *(options or WITHOUT_ACCOUNTS)]
    server = [os.environ[VARIABLE], f"--etcd-servers=http://127.0.0.1:{etcd}", f"--secure-port={port}", *told]
    with process(store, folder / "etcd.log"), process(server, folder / "apiserver.log") as started:
        found = ApiServer(port=port, folder=folder)
        _wait(found, started)
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
        *(f"--audit-policy-file={folder}/audit.json", f"--audit-log-path={folder}/audit.log"),
    ]


@contextlib.contextmanager
def process(command: list[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Runs a program until the block ends."""
    with log.open("wb") as output:
        started = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
    try:
        yield started
    finally:
        ended(started)


def ended(started: subprocess.Popen[bytes], seconds: float = 20.0) -> None:
    """Told to end, and made to when it does not."""
    started.terminate()
    try:
        started.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        started.kill()
        started.wait()


def _wait(server: ApiServer, started: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and started.poll() is None:
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


def kueue_definitions() -> list[dict[str, Any]]:
    """Kueue's own CustomResourceDefinitions."""
    with gzip.open(KUEUE_CRDS, "rt") as lines:
        return [json.loads(line) for line in lines]


def operator_definitions() -> list[dict[str, Any]]:
    """CustomResourceDefinitions of the operators' kinds, with their own schemas; the last version of a kind is the one that is kept."""
    rows = [json.loads(line) for line in OPERATOR_SCHEMAS.read_text().splitlines()]
    found = []
    for kind in dict.fromkeys(row["kind"] for row in rows):
        own = [row for row in rows if row["kind"] == kind]
        group, _, _ = own[0]["apiVersion"].partition("/")
        made = dict(a_definition(group, "", kind, f"{kind.lower()}s"))
        versions = [
            {
                "name": row["apiVersion"].partition("/")[2],
                "served": True,
                "storage": row is own[-1],
                "schema": {"openAPIV3Schema": row["schema"]},
            }
            for row in own
        ]
        made["spec"] = {**made["spec"], "scope": own[0]["scope"], "versions": versions}
        found.append(made)
    return found
