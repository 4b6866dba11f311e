"""The webhook's own metrics for Prometheus. Labels are closed words: no names of jobs, namespaces or people."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from peakgate.hooks.kubernetes.verdicts import ALLOWED, DENIED, SKIPPED, UNCHECKED
from peakgate.hooks.kubernetes.workloads import KINDS, OTHER_KIND

SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 3.0)
"""Up to what the API server waits."""

REFUSED_REASONS = ("not_post", "not_found", "content_type", "too_large", "too_slow", "malformed", "not_a_review", "too_many")
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """What is read when the metrics are asked for."""

    certificate_expiry_seconds: Callable[[], float]
    is_config_stale: Callable[[], int]
    is_service_up: Callable[[], int]
    is_beside_ready: Callable[[], int]


class WebhookMetrics:
    """Every metric carries the prefix peakgate_webhook_."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.reviews = Counter(
            "peakgate_webhook_reviews", "Reviews by kind, verdict and outcome.", ["kind", "verdict", "outcome"], registry=self.registry
        )
        self.seconds = Histogram(
            "peakgate_webhook_review_seconds", "Time from a review to its answer.", buckets=SECONDS, registry=self.registry
        )
        self.refused = Counter(
            "peakgate_webhook_requests_refused", "Requests that were no review, by reason.", ["reason"], registry=self.registry
        )
        self.reloads = Counter(
            "peakgate_webhook_certificate_reloads", "Certificates that were read again, by outcome.", ["outcome"], registry=self.registry
        )
        self._begin()

    def _begin(self) -> None:
        """A rate needs the 0 before the first count."""
        kinds = (*KINDS.values(), OTHER_KIND)
        for kind, (verdict, outcome) in product(kinds, (("admit", ALLOWED), ("reject", DENIED), ("none", SKIPPED), ("none", UNCHECKED))):
            self.reviews.labels(kind, verdict, outcome)
        for reason in REFUSED_REASONS:
            self.refused.labels(reason)
        for outcome in ("ok", "failed"):
            self.reloads.labels(outcome)

    def watch(self, watched: Watched) -> None:
        """Adds what is read live."""
        rows: tuple[tuple[str, str, Callable[[], float]], ...] = (
            (
                "peakgate_webhook_certificate_expiry_timestamp_seconds",
                "When the certificate in use ends; 0: none is in use.",
                watched.certificate_expiry_seconds,
            ),
            (
                "peakgate_webhook_config_stale",
                "1: the file of modes has a fault, its last good state holds.",
                watched.is_config_stale,
            ),
            ("peakgate_webhook_service_up", "1: the last calls of the service were answered.", watched.is_service_up),
            ("peakgate_webhook_beside_ready", "1: the service beside the webhook can judge.", watched.is_beside_ready),
        )
        for name, meaning, read in rows:
            Gauge(name, meaning, registry=self.registry).set_function(_reader(read))

    def text(self) -> bytes:
        """In Prometheus' text format."""
        return generate_latest(self.registry)


def _reader(read: Callable[[], float]) -> Callable[[], float]:
    return lambda: float(read())
