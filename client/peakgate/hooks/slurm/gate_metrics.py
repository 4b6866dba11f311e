"""The gate's own metrics for Prometheus."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from prometheus_client import start_http_server

from peakgate.hooks.slurm.gate_metric_table import METRICS
from peakgate.hooks.table_metrics import TableMetrics

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """What is read when the metrics are asked for."""

    is_breaker_open: Callable[[], bool]
    is_beside_ready: Callable[[], bool]
    are_files_stale: Callable[[], bool]
    journal_lost: Callable[[], int]


class GateMetrics:
    """The metrics of the table."""

    def __init__(self) -> None:
        self._table = table = TableMetrics(METRICS)
        self.registry = table.registry
        self.seconds = table.histogram("peakgate_gate_decision_seconds")
        self.decisions = table.counter("peakgate_gate_decisions_total")
        self.unchecked = table.counter("peakgate_gate_unchecked_total")
        self.away = table.counter("peakgate_gate_service_failures_total")
        self.refused = table.counter("peakgate_gate_connections_refused_total")
        self.admitted = table.counter("peakgate_gate_exceptions_total")

    def watch(self, watched: Watched) -> None:
        """Adds what is read live."""
        self._table.live(
            {
                "peakgate_gate_breaker_open": watched.is_breaker_open,
                "peakgate_gate_beside_ready": watched.is_beside_ready,
                "peakgate_gate_files_stale": watched.are_files_stale,
                "peakgate_gate_journal_lost_total": watched.journal_lost,
            }
        )


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
