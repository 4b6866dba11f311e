"""Every metric of the service, declared in one table. Base units; ratios are 0..1 or a quotient; names end in their unit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Protocol

SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
RATIOS = (0.5, 0.75, 0.9, 0.95, 0.98, 1.0, 1.02, 1.05, 1.1, 1.25, 1.5, 2.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A row of the table. `kind` is counter, gauge or histogram."""

    kind: str
    name: str
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()


METRICS: tuple[Metric, ...] = (
    Metric(kind="counter", name="peakgate_rpcs_total", help="Calls by method and gRPC status code.", labels=("method", "code")),
    Metric(kind="histogram", name="peakgate_rpc_seconds", help="Duration of unary calls.", labels=("method",), buckets=SECONDS),
    Metric(kind="counter", name="peakgate_verdicts_total", help="Answers of Predict by verdict.", labels=("verdict",)),
    Metric(
        kind="counter",
        name="peakgate_tries_total",
        help="Wishes to run a rejected job all the same, by what became of them.",
        labels=("outcome",),
    ),
    Metric(kind="counter", name="peakgate_answers_cached_total", help="Answers that were not computed again."),
    Metric(kind="counter", name="peakgate_requests_refused_total", help="Requests that were refused, by reason.", labels=("reason",)),
    Metric(kind="gauge", name="peakgate_audit_queue_rows", help="Predictions that wait for the database."),
    Metric(kind="counter", name="peakgate_audit_dropped_total", help="Predictions that were not stored because the queue was full."),
    Metric(kind="gauge", name="peakgate_store_up", help="1: the last use of the database worked."),
    Metric(kind="counter", name="peakgate_peaks_stored_total", help="Rows of observed peaks that were committed."),
    Metric(kind="counter", name="peakgate_peaks_refused_total", help="Rows of peaks that were refused, by reason.", labels=("reason",)),
    Metric(kind="counter", name="peakgate_rows_deleted_total", help="Rows that were old enough to go, by table.", labels=("table",)),
    Metric(kind="counter", name="peakgate_observations_total", help="Ended jobs, by what became of them.", labels=("outcome",)),
    Metric(kind="gauge", name="peakgate_calibration_observations", help="Observations behind the active calibration."),
    Metric(kind="gauge", name="peakgate_calibration_margin_ratio", help="Margin over the requirement, by group.", labels=("group",)),
    Metric(
        kind="counter",
        name="peakgate_answers_distrusted_total",
        help="Answers whose bound is a wide one because the calibration is not trusted, by reason.",
        labels=("reason",),
    ),
    Metric(
        kind="gauge",
        name="peakgate_calibration_clamped_ratio",
        help="Newest predicted jobs whose bound meets its limit, over all.",
    ),
    Metric(
        kind="gauge",
        name="peakgate_agents_silent_ratio",
        help="Nodes that owe news of what runs on them, over all that reported.",
    ),
    Metric(
        kind="histogram",
        name="peakgate_observed_over_predicted_ratio",
        help="Observed device peak over the predicted one, of ended jobs.",
        buckets=RATIOS,
    ),
)


class Instrument(Protocol):
    """One time series."""

    def add(self, amount: float = 1.0) -> None:
        """Counts."""

    def set(self, value: float) -> None:
        """Sets a gauge."""

    def observe(self, value: float) -> None:
        """Adds to a histogram."""


class Metrics(Protocol):
    """Gives out time series; keep the series that a hot path uses."""

    def series(self, name: str, **labels: str) -> Instrument:
        """The series of a metric with these labels. Raises KeyError for a name that the table does not have."""


class NullInstrument:
    """Counts nothing."""

    def add(self, amount: float = 1.0) -> None:
        """Nothing."""

    def set(self, value: float) -> None:
        """Nothing."""

    def observe(self, value: float) -> None:
        """Nothing."""


class NullMetrics:
    """The null twin of the embedded service."""

    def series(self, name: str, **labels: str) -> Instrument:  # noqa: ARG002 - a null twin takes what its sibling takes
        """A series that counts nothing."""
        return _nothing()


@cache
def _nothing() -> NullInstrument:
    return NullInstrument()


def by_name() -> Mapping[str, Metric]:
    """The table by metric name."""
    return {metric.name: metric for metric in METRICS}
