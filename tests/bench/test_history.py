"""The history of a simulated cluster: what the audit finds in it is what was simulated."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.bench.cluster_sim import Report, SimulatedJob, World, cluster
from tests.bench.history import GB, SECOND, Clock, Site, play, subject_of

from peakgate.server.calibration_report import report
from peakgate.server.store.audit_records import AuditWindow
from peakgate.server.store.sql import open_store

HOUR_US = 3600 * SECOND


def told(job: SimulatedJob) -> Report:
    """An agent that is never wrong."""
    return Report(value=min(job.need, job.card), exact=job.need <= job.card)


def test_the_audit_finds_what_was_simulated(tmp_path: Path) -> None:
    """Coverage, misses, waste and rejections of 150 jobs, counted from the jobs themselves."""
    store = open_store(f"sqlite:///{tmp_path / 'history.sqlite3'}")
    site = Site(store, Clock(0), reporter=told)
    jobs = [job for job in cluster(5, World(jobs=150)) if job.kind == "ok"]
    bounds: dict[int, int] = {}
    admitted: dict[int, bool] = {}
    submit = site.submit

    def submitted(job: SimulatedJob) -> bool:
        admitted[job.number] = submit(job)
        subject = subject_of(job)
        bounds[job.number] = site.judge.snapshot.trusted_bound(
            subject, coverage=0.99 if site.judge.snapshot.is_unsure(subject) else 0.95
        ).bound_bytes
        return admitted[job.number]

    site.submit = submitted  # type: ignore[method-assign]  # what it answers is noted
    asyncio.run(play(site, jobs, begin_us=HOUR_US, step_us=HOUR_US))
    found = report(store, site.judge.snapshot, AuditWindow(since_us=0, until_us=1 << 60), coverage=0.95, with_users=False)
    with store.audit(AuditWindow(since_us=0, until_us=1 << 60)) as source:
        ended = {row.bound_bytes for row in source.rows()}
    store.close()
    ran = [job for job in jobs if bounds[job.number] in ended]
    exact = [job for job in ran if job.need <= job.card]
    missed = [job for job in exact if int(job.need * GB) > bounds[job.number]]
    assert len(exact) > 60
    assert (found.overall.exact_rows, found.overall.misses - found.overall.out_of_memory_misses) == (len(exact), len(missed))
    waste = sum(bounds[job.number] - job.need * GB for job in exact) / len(exact)
    assert found.overall.mean_waste_bytes == pytest.approx(waste, rel=1e-3)
    rejected = [job for job in ran if not admitted[job.number]]
    rejections = found.overall.rejections
    assert rejections.predictions == sum(not each for each in admitted.values())
    assert (rejections.false_rejections, rejections.right_rejections) == (
        sum(job.need <= job.card for job in rejected),
        sum(job.need > job.card for job in rejected),
    )
