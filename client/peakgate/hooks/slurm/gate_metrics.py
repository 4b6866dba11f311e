"""The gate's own metrics for Prometheus."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, start_http_server

LOOPBACK = "127.0.0.1"
SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.25)
"""Up to what the controller waits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """What is read when the metrics are asked for."""

    is_breaker_open: Callable[[], bool]
    is_beside_ready: Callable[[], bool]
    are_files_stale: Callable[[], bool]
    journal_lost: Callable[[], int]


class GateMetrics:
    """Every metric carries the prefix peakgate_gate_."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.seconds = Histogram(
            "peakgate_gate_decision_seconds", "Time from a request to its reply.", buckets=SECONDS, registry=self.registry
        )
        self.decisions = Counter(
            "peakgate_gate_decisions", "Decisions on submissions with GPUs.", ["mode", "verdict", "outcome"], registry=self.registry
        )
        self.unchecked = Counter(
            "peakgate_gate_unchecked", "Submissions admitted or refused without a verdict.", ["reason"], registry=self.registry
        )
        self.away = Counter("peakgate_gate_service_failures", "Calls that the service did not answer.", ["code"], registry=self.registry)
        self.refused = Counter("peakgate_gate_connections_refused", "Connections that were cut.", ["reason"], registry=self.registry)
        self.admitted = Counter("peakgate_gate_exceptions", "Jobs admitted against their verdict.", ["by"], registry=self.registry)

    def watch(self, watched: Watched) -> None:
        """Adds what is read live."""
        rows = (
            ("peakgate_gate_breaker_open", "1 while the service is left alone.", watched.is_breaker_open),
            ("peakgate_gate_beside_ready", "1 while the service beside the gate can judge.", watched.is_beside_ready),
            (
                "peakgate_gate_files_stale",
                "1 while the rules or the cards have a fault, so that what they said before holds.",
                watched.are_files_stale,
            ),
            ("peakgate_gate_journal_lost", "Decisions that could not be written down.", watched.journal_lost),
        )
        for name, meaning, read in rows:
            Gauge(name, meaning, registry=self.registry).set_function(_reader(read))


def _reader(read: Callable[[], int]) -> Callable[[], float]:
    return lambda: float(read())


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
