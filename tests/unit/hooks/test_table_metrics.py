"""The metrics of the hooks are those of their tables."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from peakgate.hooks.kubernetes import metric_table as webhook_table
from peakgate.hooks.kubernetes import metrics as webhook
from peakgate.hooks.kubernetes.kueue import metric_table as kueue_table
from peakgate.hooks.kubernetes.kueue.metrics import KueueMetrics
from peakgate.hooks.slurm import gate_metric_table as gate_table
from peakgate.hooks.slurm import gate_metrics as gate
from peakgate.v1.metric import GAUGE, Metric


def of_gate() -> CollectorRegistry:
    """A gate that has done nothing but lose three lines of its journal."""
    metrics = gate.GateMetrics()
    reads = gate.Watched(is_breaker_open=lambda: False, is_beside_ready=lambda: True, are_files_stale=lambda: False, journal_lost=lambda: 3)
    metrics.watch(reads)
    return metrics.registry


def of_webhook() -> CollectorRegistry:
    """A webhook whose certificate ends at second 9."""
    metrics = webhook.WebhookMetrics()
    metrics.watch(
        webhook.Watched(
            certificate_expiry_seconds=lambda: 9.0, is_config_stale=lambda: 0, is_service_up=lambda: 1, is_beside_ready=lambda: 0
        )
    )
    return metrics.registry


@pytest.mark.parametrize(
    ("make", "table", "want"),
    [
        (of_gate, gate_table.METRICS, ["peakgate_gate_journal_lost_total 3.0", "peakgate_gate_beside_ready 1.0"]),
        (of_webhook, webhook_table.METRICS, ["peakgate_webhook_certificate_expiry_timestamp_seconds 9.0"]),
        (lambda: KueueMetrics().registry, kueue_table.METRICS, ["peakgate_kueue_waiting_workloads 0.0"]),
    ],
    ids=["gate", "webhook", "kueue"],
)
def test_every_metric_of_a_table_is_there_and_no_other(
    make: Callable[[], CollectorRegistry], table: tuple[Metric, ...], want: list[str]
) -> None:
    """With its help; what is counted begins at 0 with every combination of labels; what is read live has its value."""
    text = generate_latest(make()).decode()
    shown = re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE)
    assert sorted(shown) == sorted((metric.name, metric.kind) for metric in table)
    assert [metric.name for metric in table if f"# HELP {metric.name} {metric.help}" not in text] == []
    for metric in table:
        for labels in metric.series() if metric.kind != GAUGE and metric.labels else ():
            inside = ",".join(f'{key}="{value}"' for key, value in sorted(labels.items()))
            assert f"{metric.name}{{{inside}}} 0.0" in text
    assert [line for line in want if line not in text.splitlines()] == []


def test_a_status_that_is_on_no_list_is_another() -> None:
    """An API server may answer anything."""
    metrics = KueueMetrics()
    metrics.failed(418)
    metrics.failed(409)
    text = generate_latest(metrics.registry).decode()
    assert 'peakgate_kueue_api_errors_total{status="other"} 1.0' in text
    assert 'peakgate_kueue_api_errors_total{status="409"} 1.0' in text
