"""The deploy files: they parse, speak of the promised ports, and show only metrics that exist."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import pytest
import yaml
from tests.contract.sources import ROOT, files

from peakgate.server.metrics import METRICS

SERVER_HTTP_PORT, AGENT_METRICS_PORT, GATE_METRICS_PORT, GRPC_PORT = 9551, 9552, 9553, 50551
DOCUMENTS = [path for path in files() if path.suffix in {".yaml", ".yml", ".json"} and path.is_relative_to(ROOT)]
DASHBOARD = ROOT / "deploy/grafana/peakgate.json"
DOCKERFILE = ROOT / "deploy/docker/Dockerfile"
# What Prometheus adds to a histogram's and a summary's name.
SUFFIXES = re.compile(r"_(bucket|count|sum)$")


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


def expressions() -> list[str]:
    """Every query of the dashboard."""
    panels = json.loads(DASHBOARD.read_text())["panels"]
    return [target["expr"] for panel in panels for target in panel.get("targets", [])]


def agent_metrics() -> dict[str, set[str]]:
    """The metrics that the agent's collector makes, with their labels; a counter's name gets its suffix from the client library."""
    found = {}
    for call in ast.walk(ast.parse((ROOT / "agent/peakgate/agent/metrics.py").read_text())):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id.endswith("MetricFamily"):
            name = ast.literal_eval(call.args[0]) + ("_total" if call.func.id.startswith("Counter") else "")
            found[name] = {label for keyword in call.keywords if keyword.arg == "labels" for label in ast.literal_eval(keyword.value)}
    return found


def labels_by_metric() -> dict[str, set[str]]:
    """The metrics that exist, with the labels that Prometheus adds: the service's table, the agent's, and Prometheus' own."""
    server = {metric.name: {*metric.labels} for metric in METRICS}
    return {name: {"job", "instance", "le", *labels} for name, labels in (server | agent_metrics() | {"up": set()}).items()}


def test_the_dashboard_shows_only_metrics_that_exist() -> None:
    """Each query names a metric of the service or the agent, and groups by labels that this metric has."""
    known = labels_by_metric()
    for expression in expressions():
        used = {SUFFIXES.sub("", name) for name in re.findall(r"\b(peakgate_[a-z0-9_]+|up)\b", expression)}
        grouped = {label.strip() for labels in re.findall(r"by \(([^)]*)\)", expression) for label in labels.split(",")}
        assert used, expression
        assert used <= set(known), expression
        assert grouped <= set.union(*(known[name] for name in used)), expression


def test_the_dashboard_shows_every_metric_that_people_act_on() -> None:
    """A metric without a panel is listed here with its reason."""
    unseen = {"peakgate_answers_cached_total": "tuning only", "peakgate_calibration_observations": "the outcomes show the same"}
    unseen |= {"peakgate_calibration_writer": "one is it at any time; the log has each change"}
    shown = " ".join(expressions())
    assert {metric.name for metric in METRICS if metric.name not in shown} == set(unseen)


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


def test_units_of_different_users_share_no_folder_that_systemd_gives_away() -> None:
    """RuntimeDirectory= and LogsDirectory= belong to the unit's user: what another unit's user finds there it cannot write."""
    owners: dict[tuple[str, str], set[str]] = {}
    for unit in (ROOT / "deploy/systemd").glob("*.service"):
        lines = dict(line.split("=", 1) for line in unit.read_text().splitlines() if "=" in line and not line.startswith("#"))
        for kind in ("RuntimeDirectory", "LogsDirectory"):
            if kind in lines:
                owners.setdefault((kind, lines[kind]), set()).add(lines.get("User", unit.name))
    assert owners
    assert {folder: users for folder, users in owners.items() if len(users) > 1} == {}


@pytest.mark.parametrize("unit", ["peakgate-server.service", "peakgate-agent.service", "peakgate-gate.service"])
def test_a_systemd_unit_starts_the_command(unit: str) -> None:
    """The unit runs the one console script and restarts it when it fails."""
    text = (ROOT / "deploy/systemd" / unit).read_text()
    verb = {"server": "serve", "agent": "agent", "gate": "gate"}[unit.removeprefix("peakgate-").removesuffix(".service")]
    assert re.search(rf"^ExecStart=\S*peakgate {verb}\b", text, re.MULTILINE)
    assert re.search(r"^Restart=(on-failure|always)$", text, re.MULTILINE)
    assert re.search(r"^\[Install\]$", text, re.MULTILINE)
