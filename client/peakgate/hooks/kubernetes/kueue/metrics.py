"""The controller's metrics for Prometheus: the prefix peakgate_kueue_, base units, closed labels."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from peakgate.hooks.kubernetes.kueue.deciding import REASONS

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
STATUSES = ("0", "403", "404", "409", "410", "422", "429", "500", "503", "other")
"""Of the API server; 0: it does not answer."""


class KueueMetrics:
    """All of them, each label's values from the start."""

    def __init__(self) -> None:
        registry = self.registry = CollectorRegistry()
        self.decisions = Counter("peakgate_kueue_decisions", "States that were set on workloads.", ["reason"], registry=registry)
        self.errors = Counter("peakgate_kueue_api_errors", "Calls that the API server did not grant.", ["status"], registry=registry)
        self.seconds = Histogram("peakgate_kueue_decision_seconds", "From the queue to the state.", buckets=SECONDS, registry=registry)
        self.waiting = Gauge("peakgate_kueue_waiting_workloads", "Workloads with quota that wait for this controller.", registry=registry)
        self.oldest = Gauge("peakgate_kueue_oldest_waiting_seconds", "How long the oldest of them waits already.", registry=registry)
        self.leads = Gauge("peakgate_kueue_leader", "1 on the replica that decides.", registry=registry)
        self.synced = Gauge("peakgate_kueue_last_sync_timestamp_seconds", "When the API server last told of workloads.", registry=registry)
        for reason in REASONS:
            self.decisions.labels(reason)
        for status in STATUSES:
            self.errors.labels(status)

    def failed(self, status: int) -> None:
        """Counts a call."""
        word = str(status)
        self.errors.labels(word if word in STATUSES else "other").inc()
