"""The agent's own metrics for Prometheus, read from the live parts when they are asked for."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.core import Metric as Family
from prometheus_client.registry import Collector

from peakgate.agent.helper_reports import HelperReports
from peakgate.agent.metric_table import LOST, METRICS, SPOOL_FAILED, SPOOL_FULL, WATCHED
from peakgate.agent.nvml import Nvml
from peakgate.agent.resident import resident_bytes
from peakgate.agent.sender import Sender
from peakgate.agent.spool import Spool
from peakgate.agent.watcher import Watcher
from peakgate.v1.metric import COUNTER

if TYPE_CHECKING:
    from peakgate.agent.pod_watch import PodWatch

_TABLE = {metric.name: metric for metric in METRICS}


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentCollector(Collector):
    """Makes the families of the table."""

    nvml: Nvml
    watcher: Watcher
    spool: Spool
    sender: Sender
    reports: HelperReports
    pods: PodWatch | None = None
    wall: Callable[[], float] = time.time

    def collect(self) -> Iterator[Family]:
        """All metrics as they stand."""
        yield _one("peakgate_agent_up", float(self.watcher.is_up))
        yield _one("peakgate_agent_paused", float(self.watcher.hold.is_on))
        yield _one("peakgate_agent_resident_bytes", resident_bytes())
        yield from self._nvml_metrics()
        yield from self._gpu_metrics()
        yield from self._owner_metrics()
        yield from self._delivery_metrics()
        yield _many("peakgate_agent_helper_reports_total", {(outcome,): count for outcome, count in list(self.reports.counts.items())})

    def _nvml_metrics(self) -> Iterator[Family]:
        statistics = self.nvml.statistics
        seconds, calls, errors = list(statistics.seconds.items()), list(statistics.calls.items()), list(statistics.errors.items())
        yield _many("peakgate_agent_nvml_call_seconds_total", {(function,): value for function, value in seconds})
        yield _many("peakgate_agent_nvml_calls_total", {(function,): count for function, count in calls})
        yield _many("peakgate_agent_nvml_errors_total", {(function, str(code)): count for (function, code), count in errors})
        pace = self.watcher.sampler.process_pace
        yield _one("peakgate_agent_process_period_seconds", pace.period_seconds)
        yield _one("peakgate_agent_process_lists_ratio", pace.share)

    def _gpu_metrics(self) -> Iterator[Family]:
        known = self.watcher.sampler.watched
        members = {WATCHED: set(known.gpus), LOST: set(known.lost)}
        gpus = sorted(set.union(*members.values()))
        states: dict[tuple[str, ...], float] = {(gpu, state): float(gpu in found) for gpu in gpus for state, found in members.items()}
        yield _many("peakgate_agent_gpu_watched", {(gpu,): states[gpu, WATCHED] for gpu in gpus})
        yield _many("peakgate_agent_gpu_state", states)
        yield _many("peakgate_agent_sample_age_seconds", {(gpu,): known.age_seconds(gpu) for gpu in list(known.last_read)})
        strangers = list(self.watcher.tracker.unattributed_bytes.items())
        yield _many("peakgate_agent_unattributed_bytes", {(gpu,): used_bytes for gpu, used_bytes in strangers})

    def _owner_metrics(self) -> Iterator[Family]:
        tracker = self.watcher.tracker
        yield _one("peakgate_agent_attribution_refused", float(bool(tracker.refused)))
        if self.pods is not None:
            idle = self.pods.idle(list(self.watcher.sampler.gpus), busy=tracker.busy_gpus)
            yield _many("peakgate_agent_gpu_held_idle", {(gpu,): len(holders) for gpu, holders in idle.items()})

    def _delivery_metrics(self) -> Iterator[Family]:
        delivery = self.sender.delivery
        yield _one("peakgate_agent_spool_rows", self._waiting())
        yield _one("peakgate_agent_spool_oldest_seconds", self._oldest())
        yield _one("peakgate_agent_answered_timestamp_seconds", delivery.answered_at)
        yield _one("peakgate_agent_batches_total", delivery.batches)
        yield _one("peakgate_agent_peaks_stored_total", delivery.stored)
        yield _one("peakgate_agent_events_total", delivery.events)
        yield _one("peakgate_agent_send_failures_total", delivery.failures)
        dropped: dict[tuple[str, ...], float] = {(reason,): count for reason, count in list(delivery.refused.items())}
        own = {(SPOOL_FULL,): self.spool.dropped_rows, (SPOOL_FAILED,): self.watcher.lost_rows}
        yield _many("peakgate_agent_dropped_total", dropped | own)

    def _waiting(self) -> float:
        try:
            return self.spool.waiting()
        except sqlite3.Error:
            return float("nan")

    def _oldest(self) -> float:
        try:
            oldest = self.spool.oldest_time()
        except sqlite3.Error:
            return float("nan")
        return 0.0 if oldest is None else max(0.0, self.wall() - oldest)


def _one(name: str, value: float) -> Family:
    return _many(name, {(): value})


def _many(name: str, values: Mapping[tuple[str, ...], float]) -> Family:
    metric = _TABLE[name]
    make = CounterMetricFamily if metric.kind == COUNTER else GaugeMetricFamily
    family = make(name, metric.help, labels=metric.label_names)
    for labels, value in values.items():
        family.add_metric(labels, value)
    return family
