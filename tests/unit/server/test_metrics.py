"""The table of metrics and its exposition."""

from __future__ import annotations

import pytest

from peakgate.server.exposition import PrometheusMetrics
from peakgate.server.metrics import METRICS, NullMetrics


def test_names_follow_prometheus() -> None:
    """A prefix, base units, counters that end in _total."""
    for metric in METRICS:
        assert metric.name.startswith("peakgate_")
        assert (metric.kind == "counter") == metric.name.endswith("_total")
        assert not metric.name.endswith(("_ms", "_gb", "_percent"))
        assert metric.help.endswith(".")


def test_every_row_of_the_table_is_exposed_and_counts() -> None:
    """With its labels; two services in a process do not mix."""
    metrics, other = PrometheusMetrics(), PrometheusMetrics()
    metrics.series("peakgate_verdicts_total", verdict="ADMIT").add(3)
    metrics.series("peakgate_store_up").set(1)
    metrics.series("peakgate_rpc_seconds", method="m").observe(0.003)
    text = metrics.exposition().decode()
    assert 'peakgate_verdicts_total{verdict="ADMIT"} 3.0' in text
    assert "peakgate_store_up 1.0" in text
    assert 'peakgate_rpc_seconds_count{method="m"} 1.0' in text
    assert all(f"# HELP {metric.name} {metric.help}" in text for metric in METRICS)
    assert 'verdict="ADMIT"' not in other.exposition().decode()


def test_an_unknown_metric_is_an_error() -> None:
    """The table is complete."""
    with pytest.raises(KeyError):
        PrometheusMetrics().series("peakgate_unheard_of")


def test_the_null_twin_takes_everything() -> None:
    """An embedded service counts nothing."""
    NullMetrics().series("peakgate_store_up").set(1)
