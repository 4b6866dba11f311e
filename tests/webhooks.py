"""A real `peakgate webhook` as a process of its own, and an API server's way of asking it: HTTPS, the authority checked."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.bench.programs import PEAKGATE, ROOT, environment, free_port

START_SECONDS = 60.0
LISTENING = re.compile(r"listening on port (\d+), metrics on port (\d+)")
BESIDE_READY = "is ready, process"
PATH = "/validate?timeout=3s"
JSON = {"Content-Type": "application/json"}


@dataclass(frozen=True)
class RunningWebhook:
    """Its process, its ports, and where its files lie."""

    process: subprocess.Popen[bytes]
    folder: Path
    port: int
    metrics_port: int

    @property
    def log(self) -> str:
        """What it has said."""
        return (self.folder / "webhook.log").read_text()

    def trusting(self) -> ssl.SSLContext:
        """A client's context that trusts the authority of now."""
        return ssl.create_default_context(cafile=str(self.folder / "tls" / "ca.crt"))

    def connection(self, context: ssl.SSLContext | None = None, *, timeout: float = 10.0) -> http.client.HTTPSConnection:
        """A new connection; nothing is sent yet."""
        return http.client.HTTPSConnection("localhost", self.port, context=context or self.trusting(), timeout=timeout)

    def ask(self, body: bytes, *, context: ssl.SSLContext | None = None, path: str = PATH) -> dict[str, Any]:
        """The response to a review, over a connection of its own."""
        status, found = self.send("POST", path, body, context=context)
        if status != http.HTTPStatus.OK:
            raise RuntimeError(f"{status}: {found[:200]!r}")
        response: dict[str, Any] = json.loads(found)["response"]
        return response

    def send(
        self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] = JSON, *, context: ssl.SSLContext | None = None
    ) -> tuple[int, bytes]:
        """Status and body of any request."""
        with contextlib.closing(self.connection(context)) as connection:
            connection.request(method, path, body, dict(headers))
            response = connection.getresponse()
            return response.status, response.read()

    def socket(self) -> ssl.SSLSocket:
        """A bare one, for those who do not speak HTTP well."""
        return self.trusting().wrap_socket(socket.create_connection(("localhost", self.port), timeout=10.0), server_hostname="localhost")

    def probe(self, path: str) -> tuple[int, str]:
        """Status and text of the plain port."""
        with contextlib.closing(http.client.HTTPConnection("localhost", self.metrics_port, timeout=10.0)) as connection:
            connection.request("GET", path)
            response = connection.getresponse()
            return response.status, response.read().decode()

    def rules(self, text: str) -> None:
        """Gives it rules, in force from the next review on."""
        path = self.folder / "new.yaml"
        path.write_text(text)
        path.rename(self.folder / "webhook.yaml")


@contextlib.contextmanager
def running_webhook(folder: Path, rules: str, *arguments: str, waits_for: str = "") -> Iterator[RunningWebhook]:
    """Runs it until the block ends. `waits_for`: a word of its log that tells it is ready."""
    (folder / "webhook.yaml").write_text(rules)
    options = ["--listen", f"localhost:{free_port()}", "--metrics-port", str(free_port()), "--cert-dir", str(folder / "tls")]
    command = [str(PEAKGATE), "webhook", *options, "--service", "localhost", "--config", str(folder / "webhook.yaml"), *arguments]
    with (folder / "webhook.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=ROOT, env=environment(), stdout=log, stderr=subprocess.STDOUT)
    try:
        match = _until_listening(process, folder / "webhook.log", waits_for)
        yield RunningWebhook(process=process, folder=folder, port=int(match[1]), metrics_port=int(match[2]))
    finally:
        process.terminate()
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _until_listening(process: subprocess.Popen[bytes], log: Path, waits_for: str) -> re.Match[str]:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        text = log.read_text()
        if (match := LISTENING.search(text)) and waits_for in text:
            return match
        time.sleep(0.05)
    raise RuntimeError(f"the webhook does not start:\n{log.read_text()[-2000:]}")
