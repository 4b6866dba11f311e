"""What the example of the ten minutes installs, as real processes: the containers' own commands, their probes, the README's warning.

Only addresses and folders are this machine's; the certificate is made in a folder, since there is no API server to keep it.
"""

from __future__ import annotations

import contextlib
import json
import re
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.bench.programs import PEAKGATE, ROOT, environment, free_port
from tests.integration.kubernetes.charts import named, rendered

VALUES = "warn-one-namespace"
START_SECONDS = 40.0
IDENTIFIER = re.compile(r"\b[0-9a-f]{32}\b")


@dataclass(frozen=True)
class Installed:
    """Where the processes listen, by the port numbers of their containers, and the webhook's authority."""

    ports: dict[int, int]
    authority: Path

    def get(self, port: int, path: str) -> int:
        """The status of a plain request; 0 when nobody answers."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.ports[port]}{path}", timeout=5) as response:
                return int(response.status)
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            return 0


def container_of(component: str) -> Any:
    """The one container of a component."""
    (found,) = named(rendered(VALUES), "Deployment", f"peakgate-{component}")["spec"]["template"]["spec"]["containers"]
    return found


def server_settings(folder: Path, ports: Mapping[int, int]) -> dict[str, str]:
    """The manifest's variables, with ports and a folder of this machine."""
    return {each["name"]: each["value"] for each in container_of("server")["env"]} | {
        "PEAKGATE_HOST": "127.0.0.1",
        "PEAKGATE_GRPC_PORT": str(ports[50551]),
        "PEAKGATE_HTTP_PORT": str(ports[9551]),
        "PEAKGATE_DATABASE_URL": f"sqlite:///{folder}/peakgate.sqlite3",
    }


def webhook_command(folder: Path, ports: Mapping[int, int]) -> list[str]:
    """The manifest's, with ports and folders of this machine and without what needs a cluster."""
    here = {
        "--listen": f"127.0.0.1:{ports[9443]}",
        "--metrics-port": str(ports[9554]),
        "--server": f"127.0.0.1:{ports[50551]}",
        "--config": str(folder / "rules.yaml"),
        "--service": "localhost",
    }
    cluster = ("--read-cluster", "--nodes", "--no-nodes", "--cert-secret=", "--webhook-configuration=")
    told = [word for word in container_of("webhook")["args"] if not word.startswith(cluster)]
    names = [word.partition("=")[0] for word in told]
    assert set(here) <= set(names)
    webhook = [f"{name}={here[name]}" if name in here else word for name, word in zip(names, told, strict=True)]
    return [*webhook, "--no-beside", f"--cert-dir={folder}/certificates"]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    """Server and webhook, both ready by their readiness probes."""
    folder = tmp_path_factory.mktemp("installed")
    ports = {port: free_port() for port in (50551, 9551, 9443, 9554)}
    (folder / "rules.yaml").write_text(named(rendered(VALUES), "ConfigMap", "peakgate-webhook")["data"]["rules.yaml"])
    found = Installed(ports=ports, authority=folder / "certificates/ca.crt")
    commands = {9551: container_of("server")["args"], 9554: webhook_command(folder, ports)}
    variables = environment(**server_settings(folder, ports))
    with (folder / "log").open("wb") as log, contextlib.ExitStack() as running:
        for port, command in commands.items():
            process = running.enter_context(subprocess.Popen([PEAKGATE, *command], env=variables, stdout=log, stderr=log))
            running.callback(process.terminate)
            deadline = time.monotonic() + START_SECONDS
            while found.get(port, "/readyz") != 200:
                assert time.monotonic() < deadline, (folder / "log").read_text()
                assert process.poll() is None, (folder / "log").read_text()
                time.sleep(0.05)
        yield found


def test_every_http_probe_is_answered(installed: Installed) -> None:
    """On the path and port that the manifests name."""
    asked = []
    for component in ("server", "webhook"):
        container = container_of(component)
        ports = {port["name"]: port["containerPort"] for port in container["ports"]}
        for name in ("startupProbe", "readinessProbe", "livenessProbe"):
            if (probe := container[name].get("httpGet")) is not None:
                asked.append((component, name))
                assert installed.get(ports[probe["port"]], probe["path"]) == 200, (component, name)
    assert len(asked) == 4


def test_metrics_are_where_the_monitors_look(installed: Installed) -> None:
    """/metrics on the ports that ServiceMonitors name."""
    assert [installed.get(port, "/metrics") for port in (9551, 9554)] == [200, 200]


def told(lines: list[str]) -> list[str]:
    """The lines without what differs from time to time: names of predictions, and the line of the change, which is there when it was found
    in time."""
    return [IDENTIFIER.sub("ID", line) for line in lines if " change " not in line and " change:" not in line]


def test_the_readme_shows_what_a_person_sees(installed: Installed) -> None:
    """The example job is let in, with the very warnings that deploy/README.md shows behind kubectl's word."""
    job = yaml.safe_load((ROOT / "examples/kubernetes/does-not-fit.yaml").read_text())
    job["metadata"]["uid"] = "0193b0c2-f7e1-42b3-84d5-e6f708192a3b"
    request = {
        "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
        "kind": {"group": "batch", "version": "v1", "kind": "Job"},
        "operation": "CREATE",
        "namespace": job["metadata"]["namespace"],
        "name": job["metadata"]["name"],
        "userInfo": {"username": "somebody", "groups": ["system:authenticated"]},
        "object": job,
        "dryRun": False,
    }
    body = json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}).encode()
    (webhook,) = named(rendered(VALUES), "ValidatingWebhookConfiguration", "peakgate")["webhooks"]
    url = f"https://localhost:{installed.ports[9443]}{webhook['clientConfig']['service']['path']}?timeout={webhook['timeoutSeconds']}s"
    context = ssl.create_default_context(cafile=str(installed.authority))
    asked = urllib.request.Request(url, data=body, headers={"Content-Type": "application/json"})
    with urllib.request.urlopen(asked, timeout=10, context=context) as response:
        answer = json.load(response)["response"]
    assert answer["allowed"] is True
    shown = re.findall(r"^ *Warning: (.*)$", (ROOT / "deploy/README.md").read_text(), re.MULTILINE)
    assert told(answer["warnings"]) == told(shown)
