"""The agent's own metrics for Prometheus, read from the live parts when they are asked for."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from peakgate.agent.helper_reports import HelperReports
from peakgate.agent.nvml import Nvml
from peakgate.agent.pod_watch import PodWatch
from peakgate.agent.sender import Sender
from peakgate.agent.spool import Spool
from peakgate.agent.watcher import Watcher


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

    def _gpu_metrics(self) -> Iterator[Metric]:
        watched = GaugeMetricFamily("peakgate_agent_gpu_watched", "1 while the GPU answers.", labels=["gpu"])
        age = GaugeMetricFamily("peakgate_agent_sample_age_seconds", "Time since the GPU was last read.", labels=["gpu"])
        strange = GaugeMetricFamily("peakgate_agent_unattributed_bytes", "Memory of processes of no known job.", labels=["gpu"])
        gpus = set(self.watcher.sampler.gpus)
        for gpu, last in list(self.watcher.sampler.last_read.items()):
            watched.add_metric([gpu], float(gpu in gpus))
            age.add_metric([gpu], max(0.0, self.wall() - last))
        for gpu, used_bytes in list(self.watcher.tracker.unattributed_bytes.items()):
            strange.add_metric([gpu], used_bytes)
        yield from (watched, age, strange)

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
