"""The metrics of the table on prometheus-client, and their text for /metrics."""

# ruff: noqa: ARG002 - each kind of series refuses the verbs of the others
from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

from peakgate.server.metrics import METRICS, Instrument, Metric


class _Counter:
    def __init__(self, counter: Counter) -> None:
        self._counter = counter

    def add(self, amount: float = 1.0) -> None:
        self._counter.inc(amount)

    def set(self, value: float) -> None:
        raise TypeError("a counter cannot be set")

    def observe(self, value: float) -> None:
        raise TypeError("a counter does not observe")


class _Gauge:
    def __init__(self, gauge: Gauge) -> None:
        self._gauge = gauge

    def add(self, amount: float = 1.0) -> None:
        self._gauge.inc(amount)

    def set(self, value: float) -> None:
        self._gauge.set(value)

    def observe(self, value: float) -> None:
        raise TypeError("a gauge does not observe")


class _Histogram:
    def __init__(self, histogram: Histogram) -> None:
        self._histogram = histogram

    def add(self, amount: float = 1.0) -> None:
        raise TypeError("a histogram does not count by itself")

    def set(self, value: float) -> None:
        raise TypeError("a histogram cannot be set")

    def observe(self, value: float) -> None:
        self._histogram.observe(value)


class PrometheusMetrics:
    """One registry for one service, so that several can live in a process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self._families = {metric.name: _family(metric, self.registry) for metric in METRICS}

    def series(self, name: str, **labels: str) -> Instrument:
        """The series of a metric with these labels. Raises KeyError for a name that the table does not have."""
        family = self._families[name]
        if isinstance(family, Counter):
            return _Counter(family.labels(**labels) if labels else family)
        if isinstance(family, Gauge):
            return _Gauge(family.labels(**labels) if labels else family)
        return _Histogram(family.labels(**labels) if labels else family)

    def exposition(self) -> bytes:
        """The text format of Prometheus."""
        return generate_latest(self.registry)


def _family(metric: Metric, registry: CollectorRegistry) -> Counter | Gauge | Histogram:
    if metric.kind == "histogram":
        return Histogram(metric.name, metric.help, metric.labels, registry=registry, buckets=metric.buckets)
    kind = Counter if metric.kind == "counter" else Gauge
    return kind(metric.name, metric.help, metric.labels, registry=registry)
