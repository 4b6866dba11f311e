"""The table of metrics and its exposition."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import peakgate.server
from peakgate.server.exposition import PrometheusMetrics
from peakgate.server.intake import REASONS
from peakgate.server.metric_table import METRICS
from peakgate.server.metrics import NullMetrics
from peakgate.v1.metric import GAUGE

SOURCES = sorted(Path(next(iter(peakgate.server.__path__))).rglob("*.py"))


def test_every_row_of_the_table_is_exposed_and_counts() -> None:
    """With its labels; two services in a process do not mix."""
    metrics, other = PrometheusMetrics(), PrometheusMetrics()
    metrics.series("peakgate_verdicts_total", source="grpc", verdict="ADMIT").add(3)
    metrics.series("peakgate_store_up").set(1)
    metrics.series("peakgate_rpc_seconds", method="PredictionService/Predict").observe(0.003)
    text = metrics.exposition().decode()
    assert 'peakgate_verdicts_total{source="grpc",verdict="ADMIT"} 3.0' in text
    assert "peakgate_store_up 1.0" in text
    assert 'peakgate_rpc_seconds_count{method="PredictionService/Predict"} 1.0' in text
    assert all(f"# HELP {metric.name} {metric.help}" in text for metric in METRICS)
    assert 'peakgate_verdicts_total{source="grpc",verdict="ADMIT"} 0.0' in other.exposition().decode()


def test_everything_that_is_counted_begins_at_zero() -> None:
    """A rate over the first event needs a value before it; a gauge says nothing before it is known."""
    text = PrometheusMetrics().exposition().decode()
    for metric in METRICS:
        for labels in metric.series() if metric.kind != GAUGE else ():
            name = metric.name + ("_count" if metric.buckets else "")
            inside = ",".join(f'{key}="{value}"' for key, value in sorted(labels.items()))
            assert f"{name}{{{inside}}} 0.0" in text if labels else f"{name} 0.0" in text


def test_a_value_that_is_on_no_list_is_another() -> None:
    """The number of series does not grow with what somebody sends; a list without `other` is complete."""
    metrics = PrometheusMetrics()
    metrics.series("peakgate_requests_refused_total", reason="NEVER_SEEN").add()
    assert 'peakgate_requests_refused_total{reason="other"} 1.0' in metrics.exposition().decode()
    with pytest.raises(ValueError, match="source has no value 'fax'"):
        metrics.series("peakgate_verdicts_total", source="fax", verdict="ADMIT")


def test_an_unknown_metric_is_an_error() -> None:
    """The table is complete."""
    with pytest.raises(KeyError):
        PrometheusMetrics().series("peakgate_unheard_of")


def test_the_code_counts_what_the_table_has_and_nothing_else() -> None:
    """Each use of a series gives the labels of its row; each row is used somewhere."""
    calls = [
        call
        for path in SOURCES
        for call in ast.walk(ast.parse(path.read_text()))
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "series" and call.args
    ]
    used = {(ast.literal_eval(call.args[0]), tuple(sorted(each.arg or "" for each in call.keywords))) for call in calls}
    assert used == {(metric.name, tuple(sorted(metric.label_names))) for metric in METRICS}


def test_the_words_of_refused_rows_are_listed() -> None:
    """Those that intake.py answers with are those of its list."""
    intake = next(path for path in SOURCES if path.name == "intake.py")
    assert set(re.findall(r'reason="([A-Z_]+)"', intake.read_text())) == set(REASONS)


def test_the_null_twin_takes_everything() -> None:
    """An embedded service counts nothing."""
    NullMetrics().series("peakgate_store_up").set(1)
