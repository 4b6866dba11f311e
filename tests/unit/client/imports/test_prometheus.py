"""Jobs out of the series of dcgm-exporter."""

from __future__ import annotations

import math

from peakgate.client.imports.job import ImportedJob
from peakgate.client.imports.prometheus import MIB, jobs_of, query
from peakgate.client.imports.prometheus_http import Series

UUID = "GPU-604ac76c-d9cf-fef3-62e9-d92044ab6e52"
UNTIL, STEP = 10_000.0, 60


def a_series(points: list[tuple[float, float]] | None = None, labels: dict[str, str] | None = None) -> Series:
    """One GPU of a Slurm job, in MiB."""
    named = {"UUID": UUID, "gpu": "0", "Hostname": "n1", "modelName": "NVIDIA H100 80GB HBM3", "hpc_job": "101"}
    return Series(labels=named | (labels or {}), points=tuple(points or [(600.0, 1000.0), (660.0, 70_000.0), (720.0, 69_000.0)]))


def jobs(*series: Series, predictions: dict[str, str] | None = None, ends: dict[str, ImportedJob] | None = None) -> list[ImportedJob]:
    """Of a window that ends at 10,000 s."""
    return jobs_of(series, cluster="alpha", until=UNTIL, step_seconds=STEP, predictions=predictions or {}, ends=ends or {})


def test_the_highest_point_of_a_jobs_series_is_its_peak() -> None:
    """In MiB; with the first and last moment. How it ended is not known, so the peak is marked as censored."""
    (job,) = jobs(a_series(), predictions={"101": "predictions/abc"})
    assert (job.job, job.cluster, job.prediction, job.event, job.end_time) == ("101", "alpha", "predictions/abc", "finished", 720.0)
    (peak,) = job.peaks
    assert (peak.peak_bytes, peak.node, peak.gpu_uuid, peak.gpu_name) == (70_000 * MIB, "n1", UUID, "NVIDIA H100 80GB HBM3")
    assert (peak.first_time, peak.last_time, peak.peak_time, peak.samples, peak.flags) == (600.0, 720.0, 660.0, 3, ("censored",))


def test_pieces_of_a_series_are_one() -> None:
    """A window is asked for day by day."""
    (job,) = jobs(a_series(), a_series([(780.0, 71_000.0)]))
    assert [(peak.peak_bytes, peak.samples) for peak in job.peaks] == [(71_000 * MIB, 4)]


def test_the_accounting_says_how_it_ended() -> None:
    """Then the peak is what it is."""
    end = ImportedJob(source="slurm", cluster="alpha", job="101", restart=0, event="cancelled", end_time=730.0, exit_code=0, signal=15)
    (job,) = jobs(a_series(), ends={"101": end})
    assert (job.event, job.end_time, job.signal) == ("cancelled", 730.0, 15)
    assert [peak.flags for peak in job.peaks] == [()]


def test_two_jobs_at_one_time_share_the_figure() -> None:
    """It is of the whole GPU; of two that followed each other it is each one's own."""
    first, second = jobs(a_series(), a_series(labels={"hpc_job": "102"}))
    assert all("several" in peak.flags for job in (first, second) for peak in job.peaks)
    apart = jobs(a_series(), a_series([(900.0, 5000.0)], {"hpc_job": "102"}))
    assert not any("several" in peak.flags for job in apart for peak in job.peaks)


def test_a_job_at_the_end_of_the_window_is_running() -> None:
    """Its peak may be still to come."""
    (job,) = jobs(a_series([(UNTIL - 60, 5000.0)]))
    assert job.problem == "was still running at the end of the window"


def test_pods_and_their_label_join_on_kubernetes() -> None:
    """Behind a scrape with labels of its own, too; a MIG slice has its GPU's UUID and an instance."""
    labels = {"hpc_job": "", "namespace": "train", "pod": "llm-0", "peakgate_io_prediction": "abc", "GPU_I_ID": "3"}
    (job,) = jobs(a_series(labels=labels))
    assert (job.job, job.prediction, job.peaks[0].gpu_uuid) == ("train/llm-0", "predictions/abc", f"{UUID}/3")
    moved = {"hpc_job": "", "namespace": "monitoring", "pod": "dcgm", "exported_namespace": "train", "exported_pod": "llm-0"}
    assert [each.job for each in jobs(a_series(labels=moved))] == ["train/llm-0"]


def test_gpus_without_a_job_and_points_without_a_value_are_passed_over() -> None:
    """An idle GPU, a gap, DCGM's blank."""
    assert jobs(a_series(labels={"hpc_job": ""})) == []
    assert jobs(a_series([(600.0, math.nan), (660.0, 0.0)])) == []


def test_no_sample_falls_between_two_points() -> None:
    """Each point is the highest sample of its step."""
    assert query('hpc_job!=""', 60) == 'max_over_time(DCGM_FI_DEV_FB_USED{hpc_job!=""}[60s])'
