"""The rules of deploy/prometheus, and their cases as promtool reads them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[3]
FILES = tuple(ROOT / "deploy/prometheus" / name for name in ("recording.yml", "alerting.yml", "kueue.yml"))
CASES: Mapping[str, list[dict[str, Any]]] = yaml.safe_load(Path(__file__).with_name("rule_cases.yml").read_text())


def rules(kind: str) -> dict[str, dict[str, Any]]:
    """The rules of a kind (alert, record) by name."""
    groups = (group for path in FILES for group in yaml.safe_load(path.read_text())["groups"])
    return {rule[kind]: rule for group in groups for rule in group["rules"] if kind in rule}


def promtool_files() -> list[dict[str, object]]:
    """All cases in the form of `promtool test rules`: a file for each interval at which rules are evaluated."""
    found: dict[str, list[dict[str, object]]] = {}
    for test in (*_alert_tests(), *_record_tests()):
        found.setdefault(str(test["interval"]), []).append(test)
    return [
        {"rule_files": [str(path) for path in FILES], "evaluation_interval": interval, "tests": tests} for interval, tests in found.items()
    ]


def _alert_tests() -> Iterator[dict[str, object]]:
    known = rules("alert")
    for case in CASES["alerts"]:
        rule = known[case["alert"]]
        fired = {
            "exp_labels": {**rule["labels"], **case.get("labels", {})},
            "exp_annotations": {**rule["annotations"], "summary": case["summary"]},
        }
        moments: tuple[tuple[str, list[object]], ...] = ((case["quiet_at"], []), (case["fires_at"], [fired]))
        yield {
            "interval": case.get("interval", "1m"),
            "input_series": _series(case),
            "alert_rule_test": [{"eval_time": at, "alertname": case["alert"], "exp_alerts": alerts} for at, alerts in moments],
        }


def _record_tests() -> Iterator[dict[str, object]]:
    for case in CASES["records"]:
        name = case["record"]
        samples = [{"labels": name + labels, "value": value} for labels, value in case["want"].items()]
        yield {
            "interval": "1m",
            "input_series": _series(case),
            "promql_expr_test": [{"expr": name, "eval_time": case["at"], "exp_samples": samples}],
        }


def _series(case: Mapping[str, Any]) -> list[dict[str, str]]:
    return [{"series": name, "values": values} for name, values in case["series"].items()]
