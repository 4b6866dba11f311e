"""A whole cluster for an install: a real API server, the real kube-controller-manager beside it, and a node that runs peakgate's pods."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.bench.programs import ROOT
from tests.integration.kubernetes.charts import program
from tests.integration.kubernetes.real_api_server import VARIABLE, ApiServer, api_server, process, wait_until
from tests.integration.kubernetes.real_node import Node, a_node

# The API server reaches a webhook's Service at the addresses behind it: there is no network of pods and no kube-proxy.
OPTIONS = ("--enable-aggregator-routing=true",)
# The node of the tests does these controllers' work, and has no heartbeat.
LEFT_OUT = ("endpointslice", "endpointslice-mirroring", "endpoints", "node-lifecycle")
COMING_AND_GOING = ("events", "events.events.k8s.io", "leases.coordination.k8s.io", "componentstatuses")
"""Kinds that the cluster's own programs write all the time, or that are none; Leases are looked at apart."""


@dataclass(frozen=True)
class Cluster:
    """`kubeconfig`: an administrator's."""

    api: ApiServer
    node: Node
    kubeconfig: Path

    def shell(self, script: str, *, kubeconfig: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Runs a script of a page as it stands there, both streams as one; the page's placeholder is filled in."""
        paths = os.pathsep.join([str(Path(program("kubectl")).parent), str(Path(program("helm")).parent), os.environ["PATH"]])
        folder = self.kubeconfig.parent
        homes = {f"HELM_{name}_HOME": str(folder / "helm") for name in ("CACHE", "CONFIG", "DATA")}
        settings = os.environ | homes | {"PATH": paths, "KUBECONFIG": str(kubeconfig or self.kubeconfig), "HOME": str(folder)}
        text = "set -euo pipefail\n" + script.replace("REGISTRY", "registry.example")
        command = ["bash", "-c", text]
        return subprocess.run(
            command, cwd=ROOT, env=settings, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300, check=False
        )

    def told(self, script: str) -> str:
        """What it prints; a script that fails fails the test."""
        done = self.shell(script)
        assert done.returncode == 0, f"{script}\n{done.stdout}"
        return done.stdout

    def objects(self) -> set[str]:
        """Every object of every kind that can be listed, as namespace, kind, name and uid."""
        kinds = self.told("kubectl api-resources --verbs=list --output=name").split()
        wanted = ",".join(kind for kind in kinds if kind not in COMING_AND_GOING)
        columns = "NAMESPACE:.metadata.namespace,KIND:.kind,NAME:.metadata.name,UID:.metadata.uid"
        listed = self.told(f"kubectl get {wanted} --all-namespaces --no-headers --output=custom-columns={columns}")
        leases = self.told(f"kubectl get leases --all-namespaces --no-headers --output=custom-columns={columns}")
        return {" ".join(line.split()) for line in (*listed.splitlines(), *leases.splitlines())}


@contextlib.contextmanager
def cluster(folder: Path) -> Iterator[Cluster]:
    """Runs it until the block ends."""
    with api_server(folder, *OPTIONS) as api:
        admin = api.kubeconfig(folder / "admin.kubeconfig", token="token-of-admin")
        with process(_manager(folder, admin), folder / "manager.log"), a_node(api, folder / "pods") as node:
            wait_until(lambda: api.call("GET", "/api/v1/namespaces/default/serviceaccounts/default")[0] == 200, "the controllers work")
            yield Cluster(api=api, node=node, kubeconfig=admin)


def _manager(folder: Path, kubeconfig: Path) -> list[str]:
    wanted = ",".join(["*", *(f"-{name}-controller" for name in LEFT_OUT)])
    return [
        *("nice", str(Path(os.environ[VARIABLE]).with_name("kube-controller-manager")), f"--kubeconfig={kubeconfig}"),
        *(f"--service-account-private-key-file={folder}/sa.key", f"--root-ca-file={folder}/ca.crt"),
        *(f"--controllers={wanted}", "--leader-elect=false", "--secure-port=0"),
    ]
