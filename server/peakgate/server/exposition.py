"""The metrics of the table on prometheus-client, and their text for /metrics."""

# ruff: noqa: ARG002 - each kind of series refuses the verbs of the others
from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, disable_created_metrics, generate_latest

from peakgate.server.metric_table import METRICS
from peakgate.server.metrics import Instrument
from peakgate.v1.metric import COUNTER, GAUGE, HISTOGRAM, Metric

disable_created_metrics()  # type: ignore[no-untyped-call]  # they would double the counters, and are in no table


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
    """One registry for one service, so that several can live in a process.

    Counters and histograms begin at 0 with every combination of their labels: a rate needs a first value.
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self._table = {metric.name: metric for metric in METRICS}
        self._families = {metric.name: _family(metric, self.registry) for metric in METRICS}
        for metric in METRICS:
            if metric.kind != GAUGE and metric.labels:
                for labels in metric.series():
                    self._families[metric.name].labels(**labels)

    def series(self, name: str, **labels: str) -> Instrument:
        """The series of a metric with these labels. Raises KeyError for a name that the table does not have."""
        family, listed = self._families[name], self._table[name].listed(labels)
        if isinstance(family, Counter):
            return _Counter(family.labels(**listed) if listed else family)
        if isinstance(family, Gauge):
            return _Gauge(family.labels(**listed) if listed else family)
        return _Histogram(family.labels(**listed) if listed else family)

    def exposition(self) -> bytes:
        """The text format of Prometheus."""
        return generate_latest(self.registry)


def _family(metric: Metric, registry: CollectorRegistry) -> Counter | Gauge | Histogram:
    if metric.kind == HISTOGRAM:
        return Histogram(metric.name, metric.help, metric.label_names, registry=registry, buckets=metric.buckets)
    kind = Counter if metric.kind == COUNTER else Gauge
    return kind(metric.name, metric.help, metric.label_names, registry=registry)
