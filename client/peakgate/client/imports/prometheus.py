"""Jobs out of what dcgm-exporter left in a Prometheus: DCGM_FI_DEV_FB_USED, in MiB, of a whole GPU.

A series belongs to a job by dcgm-exporter's label: `hpc_job` from its folder of job files on Slurm, `namespace` and `pod` on Kubernetes.
It is sampled every half minute or so and of the whole GPU, so it is of the lowest class; where two jobs were on a GPU at the same time
it is of neither. How a job ended Prometheus does not know: without a file that says it, a peak is only a lower end of the need.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from peakgate.client.imports.job import CENSORED, SEVERAL, ImportedJob, ImportedPeak
from peakgate.client.imports.prometheus_http import Series
from peakgate.v1.names import full_name

SOURCE = "prometheus"
METRIC = "DCGM_FI_DEV_FB_USED"
"""dcgm-exporter, etc/default-counters.csv: "Framebuffer memory used (in MiB)"."""
MIB = 1 << 20
PREDICTION_LABELS = ("peakgate_io_prediction", "label_peakgate_io_prediction")
"""The pod's label peakgate.io/prediction, as dcgm-exporter (with pod labels on) and kube-state-metrics spell it."""

UNKNOWN_NODE = "unknown"

Job = tuple[str, str]
"""(cluster, job)."""


def query(selection: str, step_seconds: int) -> str:
    """The highest sample of every step, so that no sample falls between two points."""
    return f"max_over_time({METRIC}{{{selection}}}[{step_seconds}s])"


@dataclass(slots=True)
class _Seen:
    """What one series says over all pieces of the window."""

    labels: Mapping[str, str]
    first_time: float = math.inf
    last_time: float = 0.0
    peak_time: float = 0.0
    peak_mib: float = 0.0
    samples: int = 0

    def take(self, points: Iterable[tuple[float, float]]) -> None:
        """Takes (seconds since the epoch, MiB); a point that is no amount of memory counts as none."""
        for moment, value in points:
            if not math.isfinite(value) or value <= 0:
                continue
            self.samples += 1
            self.first_time, self.last_time = min(self.first_time, moment), max(self.last_time, moment)
            if value > self.peak_mib:
                self.peak_mib, self.peak_time = value, moment

    def overlaps(self, other: _Seen) -> bool:
        """Whether both were on the GPU at one time."""
        return self.first_time <= other.last_time and other.first_time <= self.last_time


def jobs_of(
    series: Iterable[Series],
    *,
    cluster: str,
    until: float,
    step_seconds: int,
    predictions: Mapping[str, str],
    ends: Mapping[str, ImportedJob],
) -> list[ImportedJob]:
    """The jobs behind these series. `predictions` joins jobs by their name, `ends` says how they ended."""
    peaks: dict[Job, list[ImportedPeak]] = defaultdict(list)
    named: dict[Job, str] = {}
    for (node, uuid), seen in sorted(_by_gpu(series, cluster).items()):
        for job, one in seen.items():
            shared = any(one.overlaps(other) for name, other in seen.items() if name != job)
            if one.samples:
                peaks[job].append(_peak(node, uuid, one, shared=shared))
                named[job] = named.get(job) or _prediction_of(one.labels)
    return [
        _job(job, tuple(found), named[job] or predictions.get(job[1], ""), ends.get(job[1]), running_after=until - 2 * step_seconds)
        for job, found in sorted(peaks.items())
    ]


def _by_gpu(series: Iterable[Series], cluster: str) -> dict[tuple[str, str], dict[Job, _Seen]]:
    """What each job's series say, by (node, UUID); those of a GPU that no job had are left out."""
    found: dict[tuple[str, str], dict[Job, _Seen]] = defaultdict(dict)
    for each in series:
        job = _job_of(each.labels, cluster)
        if job is not None:
            found[_gpu_of(each.labels)].setdefault(job, _Seen(each.labels)).take(each.points)
    return found


def _job(job: Job, peaks: tuple[ImportedPeak, ...], prediction: str, end: ImportedJob | None, *, running_after: float) -> ImportedJob:
    last_time = max(peak.last_time for peak in peaks)
    if end is None:
        peaks = tuple(replace(peak, flags=(*peak.flags, CENSORED)) for peak in peaks)
    return ImportedJob(
        source=SOURCE,
        cluster=job[0],
        job=job[1],
        restart=end.restart if end is not None else 0,
        prediction=prediction,
        event=end.event if end is not None else "finished",
        end_time=end.end_time if end is not None else last_time,
        exit_code=end.exit_code if end is not None else None,
        signal=end.signal if end is not None else None,
        peaks=peaks,
        problem="was still running at the end of the window" if end is None and last_time > running_after else "",
    )


def _peak(node: str, uuid: str, seen: _Seen, *, shared: bool) -> ImportedPeak:
    return ImportedPeak(
        node=node,
        gpu_uuid=uuid,
        gpu_name=seen.labels.get("modelName", ""),
        peak_bytes=int(seen.peak_mib * MIB),
        first_time=seen.first_time,
        last_time=seen.last_time,
        peak_time=seen.peak_time,
        samples=seen.samples,
        flags=(SEVERAL,) if shared else (),
    )


def _job_of(labels: Mapping[str, str], cluster: str) -> Job | None:
    """None for a GPU that no job had. Behind a scrape that keeps its own labels, those of the exporter begin with exported_."""
    job = labels.get("hpc_job", "")
    pod = labels.get("exported_pod") or labels.get("pod", "")
    namespace = labels.get("exported_namespace") or labels.get("namespace", "")
    name = job or (f"{namespace}/{pod}" if pod and namespace else "")
    return (cluster, name) if name else None


def _gpu_of(labels: Mapping[str, str]) -> tuple[str, str]:
    """(node, UUID); a MIG slice has the UUID of its GPU and an instance."""
    uuid, instance = labels.get("UUID", ""), labels.get("GPU_I_ID", "")
    return labels.get("Hostname") or labels.get("instance") or UNKNOWN_NODE, f"{uuid}/{instance}" if instance else uuid


def _prediction_of(labels: Mapping[str, str]) -> str:
    found = next((labels[name] for name in PREDICTION_LABELS if labels.get(name)), "")
    return full_name(found) if found else ""
