"""Metrics of a table on prometheus-client. Counters and histograms begin at 0 with every combination of their labels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.core import Metric as Family
from prometheus_client.registry import Collector

from peakgate.v1.metric import COUNTER, Metric

disable_created_metrics()  # type: ignore[no-untyped-call]  # they would double the counters, and are in no table


class TableMetrics:
    """A table's metrics in a registry of their own. Each row is made once, as what it is, or read live."""

    def __init__(self, table: Iterable[Metric]) -> None:
        self.registry = CollectorRegistry()
        self._rows = {metric.name: metric for metric in table}

    def counter(self, name: str) -> Counter:
        """A counter of the table."""
        row = self._rows[name]
        counter = Counter(row.name, row.help, row.label_names, registry=self.registry)
        for labels in row.series() if row.labels else ():
            counter.labels(**labels)
        return counter

    def gauge(self, name: str) -> Gauge:
        """A gauge of the table."""
        row = self._rows[name]
        return Gauge(row.name, row.help, row.label_names, registry=self.registry)

    def histogram(self, name: str) -> Histogram:
        """A histogram of the table."""
        row = self._rows[name]
        return Histogram(row.name, row.help, row.label_names, registry=self.registry, buckets=row.buckets)

    def live(self, readers: Mapping[str, Callable[[], float]]) -> None:
        """Rows without labels that are read when the metrics are asked for."""
        self.registry.register(_Live([(self._rows[name], read) for name, read in readers.items()]))


class _Live(Collector):
    def __init__(self, rows: list[tuple[Metric, Callable[[], float]]]) -> None:
        self._rows = rows

    def collect(self) -> Iterator[Family]:
        """As they stand."""
        for row, read in self._rows:
            family = CounterMetricFamily if row.kind == COUNTER else GaugeMetricFamily
            yield family(row.name, row.help, value=float(read()))
