"""The agent's own metrics for Prometheus, read from the live parts when they are asked for."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from peakgate.agent.helper_reports import HelperReports
from peakgate.agent.nvml import Nvml
from peakgate.agent.resident import resident_bytes
from peakgate.agent.sender import Sender
from peakgate.agent.spool import Spool
from peakgate.agent.watcher import Watcher

if TYPE_CHECKING:
    from peakgate.agent.pod_watch import PodWatch


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentCollector(Collector):
    """Every metric carries the prefix peakgate_agent_."""

    nvml: Nvml
    watcher: Watcher
    spool: Spool
    sender: Sender
    reports: HelperReports
    pods: PodWatch | None = None
    wall: Callable[[], float] = time.time

    def collect(self) -> Iterator[Metric]:
        """All metrics as they stand."""
        yield GaugeMetricFamily("peakgate_agent_up", "1 while NVML is open.", value=float(self.watcher.is_up))
        yield GaugeMetricFamily("peakgate_agent_paused", "1 while NVML is left alone on request.", value=float(self.watcher.hold.is_on))
        yield GaugeMetricFamily("peakgate_agent_resident_bytes", "Resident memory of the agent.", value=resident_bytes())
        yield from self._nvml_metrics()
        yield from self._gpu_metrics()
        yield from self._owner_metrics()
        yield from self._delivery_metrics()
        yield self._helper_metric()

    def _nvml_metrics(self) -> Iterator[Metric]:
        statistics = self.nvml.statistics
        seconds = CounterMetricFamily("peakgate_agent_nvml_call_seconds", "Wall time spent in NVML.", labels=["function"])
        calls = CounterMetricFamily("peakgate_agent_nvml_calls", "Calls of NVML.", labels=["function"])
        errors = CounterMetricFamily("peakgate_agent_nvml_errors", "Failed calls of NVML, by nvmlReturn_t.", labels=["function", "code"])
        for function, value in list(statistics.seconds.items()):
            seconds.add_metric([function], value)
        for function, count in list(statistics.calls.items()):
            calls.add_metric([function], count)
        for (function, code), count in list(statistics.errors.items()):
            errors.add_metric([function, str(code)], count)
        yield from (seconds, calls, errors)
        pace = self.watcher.sampler.process_pace
        yield GaugeMetricFamily("peakgate_agent_process_period_seconds", "Time between two process lists.", value=pace.period_seconds)
        yield GaugeMetricFamily("peakgate_agent_process_lists_ratio", "Share of time spent in process lists.", value=pace.share)

    def _gpu_metrics(self) -> Iterator[Metric]:
        watched = GaugeMetricFamily("peakgate_agent_gpu_watched", "1 while the GPU answers.", labels=["gpu"])
        age = GaugeMetricFamily("peakgate_agent_sample_age_seconds", "Time since the GPU was last read.", labels=["gpu"])
        strange = GaugeMetricFamily("peakgate_agent_unattributed_bytes", "Memory of processes of no known job.", labels=["gpu"])
        state = GaugeMetricFamily("peakgate_agent_gpu_state", "1 for the state that the GPU is in.", labels=["gpu", "state"])
        known = self.watcher.sampler.watched
        gpus, lost = set(known.gpus), set(known.lost)
        for gpu in sorted(gpus | lost):
            watched.add_metric([gpu], float(gpu in gpus))
            for name, members in (("watched", gpus), ("lost", lost)):
                state.add_metric([gpu, name], float(gpu in members))
        for gpu in list(known.last_read):
            age.add_metric([gpu], known.age_seconds(gpu))
        for gpu, used_bytes in list(self.watcher.tracker.unattributed_bytes.items()):
            strange.add_metric([gpu], used_bytes)
        yield from (watched, state, age, strange)

    def _owner_metrics(self) -> Iterator[Metric]:
        tracker = self.watcher.tracker
        refused = float(bool(tracker.refused))
        yield GaugeMetricFamily("peakgate_agent_attribution_refused", "1 when NVML's pids are not this machine's.", value=refused)
        if self.pods is None:
            return
        idle = GaugeMetricFamily(
            "peakgate_agent_gpu_held_idle",
            "1 for a GPU that a container holds and no process uses.",
            labels=["gpu", "namespace", "pod", "container"],
        )
        for gpu, holders in self.pods.idle(list(self.watcher.sampler.gpus), busy=tracker.busy_gpus).items():
            for holder in holders:
                idle.add_metric([gpu, holder.namespace, holder.pod, holder.container], 1.0)
        yield idle

    def _delivery_metrics(self) -> Iterator[Metric]:
        delivery = self.sender.delivery
        yield GaugeMetricFamily("peakgate_agent_spool_rows", "Rows and events not yet acknowledged.", value=self._waiting())
        yield GaugeMetricFamily("peakgate_agent_spool_oldest_seconds", "Age of the oldest row not yet acknowledged.", value=self._oldest())
        yield CounterMetricFamily("peakgate_agent_batches", "Batches that the service answered.", value=delivery.batches)
        yield CounterMetricFamily("peakgate_agent_peaks_stored", "Rows that the service stored.", value=delivery.stored)
        yield CounterMetricFamily("peakgate_agent_events", "Job events that the service stored.", value=delivery.events)
        yield CounterMetricFamily("peakgate_agent_send_failures", "Attempts that found the service away.", value=delivery.failures)
        dropped = CounterMetricFamily("peakgate_agent_dropped", "Rows and events that were dropped, by reason.", labels=["reason"])
        for reason, count in list(delivery.refused.items()):
            dropped.add_metric([reason], count)
        dropped.add_metric(["spool_full"], self.spool.dropped_rows)
        dropped.add_metric(["spool_failed"], self.watcher.lost_rows)
        yield dropped

    def _helper_metric(self) -> Metric:
        heard = CounterMetricFamily("peakgate_agent_helper_reports", "Datagrams of in-process helpers, by outcome.", labels=["outcome"])
        for outcome, count in list(self.reports.counts.items()):
            heard.add_metric([outcome], count)
        return heard

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
