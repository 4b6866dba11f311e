"""The deploy files: they parse, speak of the promised ports, and start the command."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from tests.contract.sources import ROOT, files

from peakgate.client.app import app_for

SERVER_HTTP_PORT, AGENT_METRICS_PORT, GATE_METRICS_PORT, WEBHOOK_METRICS_PORT, KUEUE_METRICS_PORT = 9551, 9552, 9553, 9554, 9555
# What helm makes YAML of; tests/integration/kubernetes has helm do so.
TEMPLATES = ROOT / "deploy/helm/peakgate/templates"
DOCUMENTS = [path for path in files() if path.suffix in {".yaml", ".yml", ".json"} and not path.is_relative_to(TEMPLATES)]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_document_parses(path: Path) -> None:
    """Every YAML and JSON file of the repository is one, and is not empty."""
    text = path.read_text(encoding="utf-8")
    assert json.loads(text) if path.suffix == ".json" else list(yaml.safe_load_all(text))


def test_prometheus_scrapes_the_promised_ports() -> None:
    """The service is scraped on its HTTP port, all others on their own."""
    config = yaml.safe_load((ROOT / "deploy/prometheus/prometheus.yml").read_text())
    targets = {
        job["job_name"]: [int(target.rpartition(":")[2]) for group in job["static_configs"] for target in group["targets"]]
        for job in config["scrape_configs"]
    }
    assert targets == {
        "peakgate-server": [SERVER_HTTP_PORT],
        "peakgate-agent": [AGENT_METRICS_PORT],
        "peakgate-gate": [GATE_METRICS_PORT],
        "peakgate-webhook": [WEBHOOK_METRICS_PORT],
        "peakgate-kueue": [KUEUE_METRICS_PORT],
    }


UNITS = {path.name: path for path in sorted((ROOT / "deploy/systemd").glob("*.service"))}


@pytest.mark.parametrize("unit", UNITS)
def test_a_systemd_unit_starts_the_command(unit: str) -> None:
    """The unit runs the one console script and restarts it when it fails."""
    text = UNITS[unit].read_text()
    verb = unit.removeprefix("peakgate-").removesuffix(".service").replace("server", "serve")
    assert re.search(rf"^ExecStart=\S*peakgate {verb}\b", text, re.MULTILINE)
    assert re.search(r"^Restart=(on-failure|always)$", text, re.MULTILINE)
    assert re.search(r"^\[Install\]$", text, re.MULTILINE)


@pytest.mark.parametrize("unit", UNITS)
def test_a_systemd_unit_uses_options_that_exist(unit: str) -> None:
    """Each option of its command is one of the verb's."""
    (line,) = re.findall(r"^ExecStart=\S*peakgate (.*)$", UNITS[unit].read_text(), re.MULTILINE)
    command: Any = typer.main.get_command(app_for([]))
    for word in line.split():
        command = getattr(command, "commands", {}).get(word, command)
    known = {option for parameter in command.params for option in parameter.opts}
    assert {word for word in line.split() if word.startswith("--")} - known == set()


def test_units_of_different_users_share_no_folder_that_systemd_gives_away() -> None:
    """RuntimeDirectory= and its like belong to the unit's user: what another unit's user finds there it cannot write."""
    owners: dict[tuple[str, str], set[str]] = {}
    for unit in UNITS.values():
        lines = dict(line.split("=", 1) for line in unit.read_text().splitlines() if "=" in line and not line.startswith("#"))
        for kind in ("RuntimeDirectory", "StateDirectory", "LogsDirectory"):
            if kind in lines:
                owners.setdefault((kind, lines[kind]), set()).add(lines.get("User", unit.name))
    assert owners
    assert {folder: users for folder, users in owners.items() if len(users) > 1} == {}


def test_units_that_meet_in_a_folder_make_it_alike() -> None:
    """The agent's and the gate's sockets stand in /run/peakgate: each unit makes it for the group, and none takes what is the other's."""
    units = [UNITS[name].read_text() for name in ("peakgate-agent.service", "peakgate-gate.service")]
    made = {line for unit in units for line in unit.splitlines() if line.startswith("ExecStartPre=")}
    assert made == {"ExecStartPre=+/usr/bin/install -d -m 3775 -o root -g peakgate /run/peakgate"}
    assert all(
        "ReadWritePaths=-/run/peakgate" in unit and "Group=peakgate" in unit.replace("SupplementaryGroups", "Group") for unit in units
    )
