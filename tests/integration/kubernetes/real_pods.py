"""A container of a pod as a process of this machine: its own command and environment, its volumes as folders, its ports as free ones.

What a kubelet does and this does not: images, users and limits, pauses before the end. Instead of an address of its own a pod has this
machine's and other ports, and a name of a Service in an argument becomes the address behind it. Where a program would find its account's
token at a fixed place, it is told a kubeconfig with that token.
"""

from __future__ import annotations

import contextlib
import http.client
import re
import socket
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
from tests.bench.programs import PEAKGATE, ROOT, environment, free_port
from tests.integration.kubernetes.real_api_server import ApiServer, ended

ANY_ADDRESS = "0.0.0.0"
TOKEN_FOLDER = "/var/run/secrets/kubernetes.io/serviceaccount"
SETTINGS = {"grpc": "PEAKGATE_GRPC_PORT", "http": "PEAKGATE_HTTP_PORT"}
"""Name of a port that only a default names -> the setting that it is the default of."""

SERVICE_ADDRESS = re.compile(r"\b([a-z0-9-]+)\.([a-z0-9-]+)\.svc:(\d+)")
VARIABLE = re.compile(r"\$\((\w+)\)")
HEALTH, SERVING = "/grpc.health.v1.Health/Check", b"\x08\x01"
PROBE_SECONDS = 2.0


def own_address() -> str:
    """This machine's address on a network: the API server takes no loopback address behind a Service. Nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        asked.connect(("192.0.2.1", 9))
        return str(asked.getsockname()[0])


Resolve = Callable[[str, str, int], str]
"""Name, namespace and port of a Service -> address:port behind it; empty while there is none."""


@dataclass
class RunningPod:
    """One pod of one container. `start` it, ask `is_ready`, `stop` it."""

    api: ApiServer
    pod: Mapping[str, Any]
    folder: Path
    address: str
    resolve: Resolve
    restarts: int = 0
    process: subprocess.Popen[bytes] | None = None
    ports: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """A pod has its ports from the beginning, whoever asks for them."""
        self.folder.mkdir(parents=True)
        self.ports = self.ports or {port["containerPort"]: free_port() for port in self.container["ports"]}

    @property
    def container(self) -> Any:
        """Its one container."""
        (found,) = self.pod["spec"]["containers"]
        return found

    @property
    def log(self) -> str:
        """What it has said."""
        return (self.folder / "log").read_text()

    def port(self, name: str) -> int:
        """The port of this machine for one that the container names."""
        return next(self.ports[port["containerPort"]] for port in self.container["ports"] if port["name"] == name)

    def start(self) -> bool:
        """Whether it could be started: what it names has to be there."""
        variables = dict(self._variables())
        folders = {mount["mountPath"]: self._volume(mount["name"]) for mount in self.container["volumeMounts"]}
        words = [self._here(VARIABLE.sub(lambda found: variables[found[1]], word), folders) for word in self.container["args"]]
        if not all(words):
            return False
        settings = {name: self._here(value, folders) for name, value in variables.items()}
        settings |= {SETTINGS[port["name"]]: str(self.port(port["name"])) for port in self.container["ports"] if port["name"] in SETTINGS}
        settings["TMPDIR"] = str(folders["/tmp"])
        if TOKEN_FOLDER in folders:
            told = self.api.kubeconfig(self.folder / "kubeconfig", tokenFile=str(folders[TOKEN_FOLDER] / "token"))
            settings["KUBECONFIG"] = str(told)
        else:
            settings["KUBECONFIG"] = "/nonexistent"
        with (self.folder / "log").open("ab") as log:
            command = ["nice", str(PEAKGATE), *words]
            self.process = subprocess.Popen(command, cwd=ROOT, env=environment(**settings), stdout=log, stderr=log)
        return True

    def is_ready(self) -> bool:
        """By its own readiness probe."""
        probe = self.container["readinessProbe"]
        try:
            if "grpc" in probe:
                return _serves(f"{self.address}:{self.ports[probe['grpc']['port']]}")
            asked = probe["httpGet"]
            connection = http.client.HTTPConnection(self.address, self.port(asked["port"]), timeout=PROBE_SECONDS)
            with contextlib.closing(connection):
                connection.request("GET", asked["path"])
                return connection.getresponse().status < 400
        except OSError:
            return False

    def stop(self) -> None:
        """Ends the process, if there is one."""
        if self.process is not None:
            ended(self.process)

    def _variables(self) -> Iterator[tuple[str, str]]:
        for each in self.container.get("env", ()):
            if "value" in each:
                yield each["name"], each["value"]
            else:
                path = each["valueFrom"]["fieldRef"]["fieldPath"]
                yield each["name"], {"metadata.name": self.pod["metadata"]["name"], "spec.nodeName": "here"}[path]

    def _here(self, word: str, folders: Mapping[str, Path]) -> str:
        """A word of the manifest as it is on this machine; empty while a Service in it has nobody behind."""
        if (found := SERVICE_ADDRESS.search(word)) is not None:
            behind = self.resolve(found[1], found[2], int(found[3]))
            return word.replace(found[0], behind) if behind else ""
        word = word.replace(ANY_ADDRESS, self.address)
        for port, here in self.ports.items():
            word = re.sub(rf"(?<=[:=]){port}$", str(here), word)
        places = sorted((place for place in folders if place != "/tmp"), key=len, reverse=True)
        place = next((place for place in places if place in word), "")
        return word.replace(place, str(folders[place])) if place else word

    def _volume(self, name: str) -> Path:
        """The folder of a volume, filled as far as the API server holds its content."""
        folder = self.folder / "volumes" / name
        folder.mkdir(parents=True, exist_ok=True)
        (volume,) = (each for each in self.pod["spec"]["volumes"] if each["name"] == name)
        for source in volume.get("projected", {}).get("sources", [volume]):
            for file, text in self._content(source).items():
                (folder / file).write_text(text)
        return folder

    def _content(self, source: Mapping[str, Any]) -> dict[str, str]:
        namespace = self.pod["metadata"]["namespace"]
        base = f"/api/v1/namespaces/{namespace}"
        if (named := source.get("configMap")) is not None:
            return dict(self.api.must("GET", f"{base}/configmaps/{named['name']}")["data"])
        if (asked := source.get("serviceAccountToken")) is not None:
            bound = {"kind": "Pod", "apiVersion": "v1", "name": self.pod["metadata"]["name"], "uid": self.pod["metadata"]["uid"]}
            body = {"spec": {"expirationSeconds": asked["expirationSeconds"], "boundObjectRef": bound}}
            path = f"{base}/serviceaccounts/{self.pod['spec']['serviceAccountName']}/token"
            return {asked["path"]: self.api.must("POST", path, body)["status"]["token"]}
        if "downwardAPI" in source:
            return {"namespace": namespace}
        assert set(source) & {"emptyDir", "persistentVolumeClaim"}, source
        return {}


def _serves(target: str) -> bool:
    with grpc.insecure_channel(target) as channel:
        try:
            ask: Callable[..., object] = channel.unary_unary(HEALTH)
            return ask(b"", timeout=PROBE_SECONDS) == SERVING
        except grpc.RpcError:
            return False
