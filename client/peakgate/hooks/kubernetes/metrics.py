"""The webhook's own metrics for Prometheus. Labels are closed words: no names of jobs, namespaces or people."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from prometheus_client import generate_latest

from peakgate.hooks.kubernetes.metric_table import METRICS
from peakgate.hooks.table_metrics import TableMetrics

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """What is read when the metrics are asked for."""

    certificate_expiry_seconds: Callable[[], float]
    is_config_stale: Callable[[], int]
    is_service_up: Callable[[], int]
    is_beside_ready: Callable[[], int]


class WebhookMetrics:
    """The metrics of the table."""

    def __init__(self) -> None:
        self._table = table = TableMetrics(METRICS)
        self.registry = table.registry
        self.reviews = table.counter("peakgate_webhook_reviews_total")
        self.patches = table.counter("peakgate_webhook_patches_total")
        self.seconds = table.histogram("peakgate_webhook_review_seconds")
        self.refused = table.counter("peakgate_webhook_requests_refused_total")
        self.reloads = table.counter("peakgate_webhook_certificate_reloads_total")

    def watch(self, watched: Watched) -> None:
        """Adds what is read live."""
        self._table.live(
            {
                "peakgate_webhook_certificate_expiry_timestamp_seconds": watched.certificate_expiry_seconds,
                "peakgate_webhook_config_stale": watched.is_config_stale,
                "peakgate_webhook_service_up": watched.is_service_up,
                "peakgate_webhook_beside_ready": watched.is_beside_ready,
            }
        )

    def text(self) -> bytes:
        """In Prometheus' text format."""
        return generate_latest(self.registry)
