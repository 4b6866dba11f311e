"""The deploy files: they parse, speak of the promised ports, and start the command."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml
from tests.contract.sources import ROOT, files

SERVER_HTTP_PORT, AGENT_METRICS_PORT, GATE_METRICS_PORT, GRPC_PORT = 9551, 9552, 9553, 50551
DOCUMENTS = [path for path in files() if path.suffix in {".yaml", ".yml", ".json"} and path.is_relative_to(ROOT)]
DOCKERFILE = ROOT / "deploy/docker/Dockerfile"


def instructions() -> list[tuple[str, str]]:
    """(instruction, arguments) of the Dockerfile, continued lines joined, without comments."""
    text = re.sub(r"\\\n", " ", DOCKERFILE.read_text())
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [(line.split(None, 1)[0], line.split(None, 1)[1]) for line in lines]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_document_parses(path: Path) -> None:
    """Every YAML and JSON file of the repository is one, and is not empty."""
    text = path.read_text(encoding="utf-8")
    assert json.loads(text) if path.suffix == ".json" else list(yaml.safe_load_all(text))


def test_prometheus_scrapes_the_promised_ports() -> None:
    """The service is scraped on its HTTP port, the agent and the gate on their own."""
    config = yaml.safe_load((ROOT / "deploy/prometheus/prometheus.yml").read_text())
    targets = {
        job["job_name"]: [int(target.rpartition(":")[2]) for group in job["static_configs"] for target in group["targets"]]
        for job in config["scrape_configs"]
    }
    assert targets == {
        "peakgate-server": [SERVER_HTTP_PORT],
        "peakgate-agent": [AGENT_METRICS_PORT],
        "peakgate-gate": [GATE_METRICS_PORT],
    }


def test_the_image_is_small_and_not_root() -> None:
    """A multi-stage build from the official image, without a registry host, that runs as a numbered user."""
    bases = [arguments.split()[0] for word, arguments in instructions() if word == "FROM"]
    users = [arguments for word, arguments in instructions() if word == "USER"]
    assert bases == ["python:3.12-slim"] * 2
    assert users[-1].isdigit()
    assert users[-1] != "0"


def test_the_image_copies_files_that_exist() -> None:
    """Every file that the build copies is in the repository and let through by the ignore file."""
    copied = {name for word, arguments in instructions() if word == "COPY" and "--from" not in arguments for name in arguments.split()[:-1]}
    ignored = DOCKERFILE.with_name("Dockerfile.dockerignore").read_text().splitlines()
    assert [name for name in copied if not (ROOT / name).exists()] == []
    assert {line[1:] for line in ignored if line.startswith("!")} == copied


def test_the_image_opens_the_promised_ports() -> None:
    """gRPC and HTTP."""
    assert [arguments.split() for word, arguments in instructions() if word == "EXPOSE"] == [[str(GRPC_PORT), str(SERVER_HTTP_PORT)]]


@pytest.mark.parametrize("unit", ["peakgate-server.service", "peakgate-agent.service", "peakgate-gate.service"])
def test_a_systemd_unit_starts_the_command(unit: str) -> None:
    """The unit runs the one console script and restarts it when it fails."""
    text = (ROOT / "deploy/systemd" / unit).read_text()
    verb = {"server": "serve", "agent": "agent", "gate": "gate"}[unit.removeprefix("peakgate-").removesuffix(".service")]
    assert re.search(rf"^ExecStart=\S*peakgate {verb}\b", text, re.MULTILINE)
    assert re.search(r"^Restart=(on-failure|always)$", text, re.MULTILINE)
    assert re.search(r"^\[Install\]$", text, re.MULTILINE)
