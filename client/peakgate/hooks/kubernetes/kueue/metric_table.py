"""Every metric of the controller of Kueue's AdmissionCheck, all under peakgate_kueue_."""

from __future__ import annotations

from peakgate.hooks.kubernetes.kueue.deciding import REASONS
from peakgate.v1.metric import COUNTER, GAUGE, HISTOGRAM, OTHER, Label, Metric

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
STATUSES = ("0", "403", "404", "409", "410", "422", "429", "500", "503", OTHER)
"""Of the API server; 0: it does not answer."""

METRICS: tuple[Metric, ...] = (
    Metric(
        kind=COUNTER,
        name="peakgate_kueue_decisions_total",
        help="States that were set on workloads, by reason.",
        labels=(Label(name="reason", values=REASONS),),
    ),
    Metric(
        kind=COUNTER,
        name="peakgate_kueue_api_errors_total",
        help="Calls that the API server did not grant, by status; 0: it did not answer.",
        labels=(Label(name="status", values=STATUSES),),
    ),
    Metric(kind=HISTOGRAM, name="peakgate_kueue_decision_seconds", help="From the queue to the state.", buckets=SECONDS),
    Metric(kind=GAUGE, name="peakgate_kueue_waiting_workloads", help="Workloads with quota that wait for this controller."),
    Metric(kind=GAUGE, name="peakgate_kueue_oldest_waiting_seconds", help="How long the oldest of them has waited."),
    Metric(kind=GAUGE, name="peakgate_kueue_leader", help="1 on the replica that decides."),
    Metric(kind=GAUGE, name="peakgate_kueue_last_sync_timestamp_seconds", help="When the API server last told of workloads."),
)
