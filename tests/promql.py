"""Every expression of the rules and the dashboards, and what it selects."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import promql_parser
import yaml

ROOT = Path(__file__).parents[1]
RULES = tuple(ROOT / "deploy/prometheus" / name for name in ("recording.yml", "alerting.yml", "kueue.yml"))
DASHBOARDS = tuple(ROOT / "deploy/grafana" / name for name in ("admission.json", "accuracy.json"))
PLACEHOLDERS = {"$__rate_interval": "1m", "$__interval": "15s", "$__range": "1h", "$gpu_model": ".*", "$framework": ".*"}
"""What Grafana puts in, and what it puts in for `all`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expression:
    """One expression. `place`: for a person. `is_condition`: of an alert, which is empty while all is well."""

    place: str
    text: str
    is_condition: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Selector:
    """A metric with its matchers as (label, operator, value)."""

    name: str
    matchers: tuple[tuple[str, str, str], ...]
    text: str


def rules() -> Iterator[dict[str, Any]]:
    """Every rule, recording ones first."""
    for path in RULES:
        for group in yaml.safe_load(path.read_text())["groups"]:
            yield from group["rules"]


def rule_expressions() -> list[Expression]:
    """Of rules."""
    return [Expression(place=rule.get("alert") or rule["record"], text=rule["expr"], is_condition="alert" in rule) for rule in rules()]


def panel_expressions() -> list[Expression]:
    """Of panels, with a value for what Grafana puts in."""
    boards = {path.name: json.loads(path.read_text()) for path in DASHBOARDS}
    return [
        Expression(place=f"{name}: {panel['title']}", text=_filled(target["expr"]))
        for name, board in boards.items()
        for panel in board["panels"]
        for target in panel.get("targets", ())
    ]


def expressions() -> list[Expression]:
    """All of them."""
    return rule_expressions() + panel_expressions()


def selectors(text: str) -> list[Selector]:
    """What an expression reads. Raises ValueError for text that is no PromQL."""
    return [
        Selector(
            name=node.name or "",
            matchers=tuple((each.name, _operator(each), each.value) for each in node.matchers.matchers),
            text=node.prettify(),
        )
        for node in _walk(promql_parser.parse(text))
        if isinstance(node, promql_parser.VectorSelector)
    ]


def grouped_by(text: str) -> set[str]:
    """The labels that an expression keeps or joins by."""
    lists = re.findall(r"\b(?:by|on) \(([^)]*)\)", text)
    return {label.strip() for labels in lists for label in labels.split(",") if label.strip()}


def _filled(text: str) -> str:
    for name, value in PLACEHOLDERS.items():
        text = text.replace(name, value)
    return text


def _operator(matcher: Any) -> str:
    return {"Equal": "=", "NotEqual": "!=", "Re": "=~", "NotRe": "!~"}[str(matcher.op).rpartition(".")[2]]


def _walk(node: Any) -> Iterator[Any]:
    yield node
    for name in ("lhs", "rhs", "expr", "args", "vector_selector", "param"):
        below = getattr(node, name, None)
        for each in below if isinstance(below, list) else [below]:
            if hasattr(each, "prettify"):
                yield from _walk(each)
