"""The controller's metrics for Prometheus."""

from __future__ import annotations

from peakgate.hooks.kubernetes.kueue.metric_table import METRICS, STATUSES
from peakgate.hooks.table_metrics import TableMetrics
from peakgate.v1.metric import OTHER


class KueueMetrics:
    """The metrics of the table."""

    def __init__(self) -> None:
        table = TableMetrics(METRICS)
        self.registry = table.registry
        self.decisions = table.counter("peakgate_kueue_decisions_total")
        self.errors = table.counter("peakgate_kueue_api_errors_total")
        self.seconds = table.histogram("peakgate_kueue_decision_seconds")
        self.waiting = table.gauge("peakgate_kueue_waiting_workloads")
        self.oldest = table.gauge("peakgate_kueue_oldest_waiting_seconds")
        self.leads = table.gauge("peakgate_kueue_leader")
        self.synced = table.gauge("peakgate_kueue_last_sync_timestamp_seconds")

    def failed(self, status: int) -> None:
        """Counts a call."""
        word = str(status)
        self.errors.labels(word if word in STATUSES else OTHER).inc()
