"""A real Prometheus, and what it scrapes: a service, an agent on simulated GPUs, a Slurm gate, a webhook, and a controller beside us."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes.client import ApiClient, Configuration
from prometheus_client import start_http_server
from tests.integration.agent_service import PROGRAM
from tests.integration.kubernetes.api_server import ApiServer
from tests.integration.kubernetes.api_server_http import serving
from tests.promql import RULES

from peakgate.hooks.kubernetes.kueue.cluster import Cluster
from peakgate.hooks.kubernetes.kueue.run import KueueOptions, Replica

ANNOUNCEMENT = re.compile(r"gRPC on (\S+) and HTTP on (\S+)")
SERVICE = "from peakgate.server.main import run_server; raise SystemExit(run_server(grpc_port=0, http_port=0, database_url={url!r}))"
EVERY = "500ms"
"""Between two scrapes, and between two evaluations of the rules."""
START_SECONDS = 45.0


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


def until(holds: Callable[[], bool], *, seconds: float = START_SECONDS, what: str = "it") -> None:
    """Waits for something that another process does."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            raise AssertionError(f"{what} does not hold after {seconds} s")
        time.sleep(0.1)


@contextlib.contextmanager
def running_service(folder: Path) -> Iterator[tuple[str, str]]:
    """Its gRPC and HTTP addresses."""
    code = SERVICE.format(url=f"sqlite:///{folder}/store.sqlite3")
    environment = os.environ | {"PEAKGATE_QUIET_SECONDS": "0"}
    with (folder / "service.log").open("wb") as log:
        process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=log, text=True, env=environment)
    with _ended(process):
        assert process.stdout is not None
        found = ANNOUNCEMENT.search(process.stdout.readline())
        assert found, (folder / "service.log").read_text()
        yield found[1], found[2]


@contextlib.contextmanager
def running_agent(folder: Path, server: str) -> Iterator[int]:
    """The port of its metrics."""
    port = free_port()
    options: dict[str, object] = {
        "server": server,
        "simulate": "demo",
        "node": "node-1",
        "cluster": "alpha",
        "spool": str(folder / "agent.db"),
        "once": False,
        "duration_seconds": None,
        "transport": "unary",
        "metrics_port": port,
        "interval_seconds": 0.3,
    }
    environment = os.environ | {"XDG_CACHE_HOME": str(folder.parent / "cache")}
    with (folder / "agent.log").open("wb") as log:
        process = subprocess.Popen([sys.executable, "-c", PROGRAM, json.dumps(options)], stderr=log, env=environment)
    with _ended(process):
        yield port


@contextlib.contextmanager
def running_controller(cluster: ApiServer, server: str) -> Iterator[int]:
    """Kueue's controller on a double of the API server; the port of its metrics."""
    with serving(cluster) as address:
        configuration = Configuration()
        configuration.host = address
        options = KueueOptions(server=server, namespace="peakgate", lease="peakgate-kueue", lease_seconds=1.5)
        replica = Replica(Cluster(ApiClient(configuration)), options, identity="one")
        metrics, metrics_thread = start_http_server(0, addr="127.0.0.1", registry=replica.metrics.registry)
        thread = threading.Thread(target=replica.run, daemon=True)
        thread.start()
        try:
            yield metrics.server_port
        finally:
            replica.stopped.set()
            thread.join(10)
            metrics.shutdown()
            metrics.server_close()
            metrics_thread.join()


@dataclass(frozen=True, slots=True)
class Prometheus:
    """A running one."""

    address: str

    def get(self, path: str, **query: str) -> Any:
        """What its API answers."""
        url = f"{self.address}/api/v1/{path}?{urllib.parse.urlencode(query)}"
        with urllib.request.urlopen(url, timeout=10) as answer:
            return json.load(answer)["data"]

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The series that an expression has now."""
        found: list[dict[str, Any]] = self.get("query", query=expression)["result"]
        return found

    def value(self, expression: str) -> float:
        """The only value of an expression; NaN without one."""
        found = self.query(expression)
        return float(found[0]["value"][1]) if found else float("nan")

    def is_scraping(self) -> bool:
        """Whether every target was read without an error."""
        targets = self.get("targets", state="active")["activeTargets"]
        return bool(targets) and all(each["health"] == "up" for each in targets)


@contextlib.contextmanager
def running_prometheus(folder: Path, targets: dict[str, str]) -> Iterator[Prometheus]:
    """Scrapes these (job, address) and evaluates the rules of the project."""
    program = shutil.which("prometheus")
    if program is None:
        pytest.skip("no prometheus (Debian: prometheus)")
    jobs = [{"job_name": job, "static_configs": [{"targets": [address]}]} for job, address in targets.items()]
    config = {"global": {"scrape_interval": EVERY, "evaluation_interval": EVERY}, "rule_files": [str(path) for path in RULES]}
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config | {"scrape_configs": jobs}))
    address = f"127.0.0.1:{free_port()}"
    command = [program, f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/tsdb", f"--web.listen-address={address}"]
    with (folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
    found = Prometheus(f"http://{address}")
    with _ended(process):
        until(lambda: _answers(address, process), what="prometheus listens")
        until(found.is_scraping, what=f"prometheus scrapes {targets}")
        yield found


def _answers(address: str, process: subprocess.Popen[bytes]) -> bool:
    assert process.poll() is None, "prometheus has ended"
    try:
        with urllib.request.urlopen(f"http://{address}/-/ready", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


@contextlib.contextmanager
def _ended(process: subprocess.Popen[Any]) -> Iterator[None]:
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()
