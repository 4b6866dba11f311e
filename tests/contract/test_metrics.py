"""The metrics' tables: their form, that rules and panels ask only for what is there, and that people see what they act on."""

from __future__ import annotations

import re
from functools import cache
from importlib import util

import pytest
from tests.contract.sources import ROOT
from tests.promql import Expression, expressions, grouped_by, panel_expressions, rules, selectors

from peakgate.v1.metric import COUNTER, GAUGE, HISTOGRAM, Metric

ABOUT_ONE_JOB = {"job", "pod", "user", "model", "namespace", "container", "prediction", "name", "uid", "message", "account", "path"}
"""Labels that grow with what people submit, or that are the scraper's own."""
UNITS = ("_seconds", "_bytes", "_ratio", "_rows", "_info")
MOST_SERIES = 400
"""Of one metric, before the buckets of a histogram."""

# Metrics of others that rules and panels ask for, with their labels.
OTHERS = {"up": {"job", "instance"}, "apiserver_admission_webhook_fail_open_count": {"name", "type"}}
UNSEEN = {
    "peakgate_agent_gpu_watched": "gpu_state tells it as well",
    "peakgate_agent_nvml_calls_total": "their time is shown",
    "peakgate_agent_nvml_errors_total": "lost GPUs and blind agents are shown",
    "peakgate_agent_process_period_seconds": "the time in NVML is shown",
    "peakgate_agent_process_lists_ratio": "the time in NVML is shown",
    "peakgate_agent_resident_bytes": "bounded, and watched by whoever limits it",
    "peakgate_agent_batches_total": "what the service stored is shown",
    "peakgate_agent_peaks_stored_total": "what the service stored is shown",
    "peakgate_agent_events_total": "ended jobs are shown",
    "peakgate_agent_send_failures_total": "the time since the last answer is shown",
}
"""Metrics without a panel, each with its reason."""


@cache
def tables() -> dict[str, tuple[Metric, ...]]:
    """Each program's table, as the reference page takes them."""
    spec = util.spec_from_file_location("reference", ROOT / "deploy/prometheus/reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found: dict[str, tuple[Metric, ...]] = module.tables()
    return found


METRICS = [metric for metrics in tables().values() for metric in metrics]


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_a_metric_has_its_form(metric: Metric) -> None:
    """A prefix, base units, a sentence; counters end in _total, and only histograms have buckets, which rise."""
    assert re.fullmatch(r"peakgate(_[a-z]+)+", metric.name)
    assert metric.kind in {COUNTER, GAUGE, HISTOGRAM}
    assert (metric.kind == COUNTER) == metric.name.endswith("_total")
    assert not re.search(
        r"_(ms|us|milliseconds|minutes|hours|kb|mb|gb|mib|gib|percent|count|sum|bucket|created)$", metric.name.removesuffix("_total")
    )
    assert metric.help[0].isupper() or metric.help[0].isdigit()
    assert metric.help.endswith(".")
    assert bool(metric.buckets) == (metric.kind == HISTOGRAM)
    assert list(metric.buckets) == sorted(set(metric.buckets))
    if metric.kind == HISTOGRAM:
        assert metric.name.endswith(UNITS)


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_no_label_grows_with_what_people_submit(metric: Metric) -> None:
    """Each label has all its values written down, or says what bounds them; none is about a single job."""
    assert not ABOUT_ONE_JOB & set(metric.label_names)
    assert all(bool(label.values) != bool(label.bounded_by) for label in metric.labels)
    assert all(len(set(label.values)) == len(label.values) for label in metric.labels)
    assert sum(1 for _ in metric.series()) <= MOST_SERIES


def test_what_services_and_hooks_count_is_known_beforehand() -> None:
    """Only agents have labels for what a node holds: its GPUs, and NVML's own words."""
    assert {metric.name for metric in METRICS if not metric.is_closed} <= {metric.name for metric in tables()["peakgate-agent"]}


def test_no_metric_has_two_tables() -> None:
    """Programs that are scraped side by side do not mix."""
    names = [metric.name for metric in METRICS]
    assert sorted(set(names)) == sorted(names)


@cache
def known() -> dict[str, dict[str, tuple[str, ...]]]:
    """Metrics, recorded series and those of others -> their labels with the values that are written down."""
    ours = {metric.name: {label.name: label.values for label in metric.labels} for metric in METRICS}
    none: tuple[str, ...] = ()
    others = {name: dict.fromkeys(labels, none) for name, labels in OTHERS.items()}
    recorded = {str(rule["record"]): dict.fromkeys(grouped_by(rule["expr"]) - {"le"}, none) for rule in rules() if "record" in rule}
    return ours | others | recorded


@pytest.mark.parametrize("expression", expressions(), ids=lambda expression: expression.place)
def test_an_expression_asks_for_what_is_there(expression: Expression) -> None:
    """Names, labels and the values that they are compared with exist; it groups by labels that its metrics have."""
    found = selectors(expression.text)
    assert found or expression.text == "vector(0)"
    names = [name if name in known() else re.sub(r"_(bucket|count|sum)$", "", name) for name in (each.name for each in found)]
    assert set(names) <= set(known())
    for name, selector in zip(names, found, strict=True):
        for label, operator, value in selector.matchers:
            values = known()[name].get(label)
            assert values is not None or label in {"job", "instance", "le"}, (name, label)
            if values and operator in {"=", "!="}:
                assert value in values
            if values and operator in {"=~", "!~"}:
                assert any(re.fullmatch(value, each) for each in values)
    assert grouped_by(expression.text) <= {"job", "instance", "le"}.union(*(known()[name] for name in names))


@pytest.mark.parametrize("rule", [rule for rule in rules() if "record" in rule], ids=lambda rule: rule["record"])
def test_a_recorded_series_is_named_as_prometheus_advises(rule: dict[str, str]) -> None:
    """level:metric:operation, where the level is the labels that are left; no level where none are."""
    kept = re.findall(r"sum by \(([^)]*)\)", rule["expr"])
    labels = [label.strip() for label in kept[0].split(",") if label.strip() != "le"] if kept else []
    level, metric, operation = ["", *rule["record"].split(":")][-3:]
    assert level == "_".join(labels)
    assert metric.startswith("peakgate_")
    assert re.fullmatch(r"(rate|ratio|p\d+_|passed_ratio|rejected_ratio)\d+[mhd]", operation)


def test_every_metric_that_people_act_on_is_shown() -> None:
    """A metric without a panel is listed with its reason."""
    shown = {each.name for expression in panel_expressions() for each in selectors(expression.text)}
    recorded = {rule["record"]: {each.name for each in selectors(rule["expr"])} for rule in rules() if "record" in rule}
    shown |= {name for record in shown & recorded.keys() for name in recorded[record]}
    names = {re.sub(r"_(bucket|count|sum)$", "", name) for name in shown}
    assert {metric.name for metric in METRICS} - names == set(UNSEEN)
