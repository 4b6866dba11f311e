"""The rules, run by promtool on made-up time series."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from tests.integration.prometheus.rules import CASES, FILES, ROOT, promtool_files, rules

SEVERITIES = {"page", "warning", "info"}
PAGES = {
    "PeakgatePredictionsLost": "lost",
    "PeakgateKueueDown": "queue",
    "PeakgateKueueNoLeader": "queue",
    "PeakgateKueueWaits": "queue",
}
"""Alerts that may wake somebody, and the word of their description that says why."""


@pytest.fixture
def promtool() -> str:
    """Prometheus' own checker."""
    found = shutil.which("promtool")
    if found is None:
        pytest.skip("no promtool (Debian: prometheus)")
    return found


def test_every_rule_has_a_case() -> None:
    """And every case is of a rule."""
    assert [case["alert"] for case in CASES["alerts"]] == list(rules("alert"))
    assert [case["record"] for case in CASES["records"]] == list(rules("record"))


def test_the_rules_do_what_their_cases_say(promtool: str, tmp_path: Path) -> None:
    """Each alert is quiet before it fires, and each recorded series has its value."""
    paths = [tmp_path / f"{number}.yml" for number, _ in enumerate(promtool_files())]
    for path, content in zip(paths, promtool_files(), strict=True):
        path.write_text(yaml.safe_dump(content, sort_keys=False))
    done = subprocess.run([promtool, "test", "rules", *map(str, paths)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_rules_are_well_formed(promtool: str) -> None:
    """No duplicates, no syntax that this version does not have; the example of a configuration finds them."""
    for command in (["rules", *map(str, FILES)], ["config", str(ROOT / "deploy/prometheus/prometheus.yml")]):
        done = subprocess.run([promtool, "check", *command], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_nobody_is_woken_for_a_service_that_lets_jobs_through() -> None:
    """Only lost data and a queue that stands still are pages, and each alert says why it is what it is."""
    found = rules("alert")
    assert {rule["labels"]["severity"] for rule in found.values()} == SEVERITIES
    assert {name for name, rule in found.items() if rule["labels"]["severity"] == "page"} == set(PAGES)
    for name, rule in found.items():
        text = rule["annotations"]["description"]
        assert {"page": "A page: ", "warning": "A ticket", "info": "For information"}[rule["labels"]["severity"]] in text, name
        assert PAGES.get(name, "") in text


def test_every_alert_has_its_entry_in_the_runbook() -> None:
    """Under a heading of its name, with the same four parts, and the alert's link leads there."""
    entries = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", (ROOT / "docs/runbook.md").read_text(), re.MULTILINE | re.DOTALL))
    assert list(entries) == list(rules("alert"))
    for name, rule in rules("alert").items():
        assert rule["annotations"]["runbook_url"] == f"docs/runbook.md#{name.lower()}"
        assert [part for part in ("**Means**", "**Users see**", "**First**", "**Ignore when**") if part not in entries[name]] == [], name
        block = re.search(r"```sh\n(.*?)```", entries[name], re.DOTALL)
        assert block, name
        assert len(block[1].splitlines()) == 3, name
