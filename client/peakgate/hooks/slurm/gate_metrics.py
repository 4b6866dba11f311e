"""The gate's own metrics for Prometheus."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Counter, Histogram, disable_created_metrics, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.core import Metric as Family
from prometheus_client.registry import Collector

from peakgate.hooks.slurm.gate_metric_table import METRICS

LOOPBACK = "127.0.0.1"
TABLE = {metric.name: metric for metric in METRICS}
SECONDS = TABLE["peakgate_gate_decision_seconds"]

disable_created_metrics()  # type: ignore[no-untyped-call]  # they would double the counters, and are in no table


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """What is read when the metrics are asked for."""

    is_breaker_open: Callable[[], bool]
    is_beside_ready: Callable[[], bool]
    are_files_stale: Callable[[], bool]
    journal_lost: Callable[[], int]


class GateMetrics:
    """The metrics of the table; counters begin at 0 with every combination of their labels."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.seconds = Histogram(SECONDS.name, SECONDS.help, registry=self.registry, buckets=SECONDS.buckets)
        self.decisions = self._counter("peakgate_gate_decisions_total")
        self.unchecked = self._counter("peakgate_gate_unchecked_total")
        self.away = self._counter("peakgate_gate_service_failures_total")
        self.refused = self._counter("peakgate_gate_connections_refused_total")
        self.admitted = self._counter("peakgate_gate_exceptions_total")

    def watch(self, watched: Watched) -> None:
        """Adds what is read live."""
        self.registry.register(_Live(watched))

    def _counter(self, name: str) -> Counter:
        metric = TABLE[name]
        counter = Counter(metric.name, metric.help, metric.label_names, registry=self.registry)
        for labels in metric.series():
            counter.labels(**labels)
        return counter


class _Live(Collector):
    def __init__(self, watched: Watched) -> None:
        self._watched = watched

    def collect(self) -> Iterator[Family]:
        """The live ones as they stand."""
        for name, read in (
            ("peakgate_gate_breaker_open", self._watched.is_breaker_open),
            ("peakgate_gate_beside_ready", self._watched.is_beside_ready),
            ("peakgate_gate_files_stale", self._watched.are_files_stale),
        ):
            yield GaugeMetricFamily(name, TABLE[name].help, value=float(read()))
        lost = TABLE["peakgate_gate_journal_lost_total"]
        yield CounterMetricFamily(lost.name, lost.help, value=self._watched.journal_lost())


@contextlib.contextmanager
def served(metrics: GateMetrics, port: int | None) -> Iterator[int | None]:
    """Serves on this host's loopback while the block runs; the port. None: not at all. Raises OSError for a port that cannot be had."""
    if port is None:
        yield None
        return
    server, thread = start_http_server(port, addr=LOOPBACK, registry=metrics.registry)
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
