"""Jobs of a simulated cluster are submitted to a method, and what it did is counted. Sizes in GB."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from tests.bench.cluster_sim import Report, Reporter, SimulatedJob, report


class Method(Protocol):
    """Something that bounds jobs and learns from reports."""

    def bound(self, job: SimulatedJob) -> float:
        """GB that the job's need should stay under."""
        ...

    def learn(self, job: SimulatedJob, report: Report) -> None:
        """A report has arrived."""
        ...


@dataclass(slots=True)
class Run:
    """What a method did on a cluster."""

    jobs: list[SimulatedJob]
    bounds: list[float] = field(default_factory=list)
    admitted: list[bool] = field(default_factory=list)

    def rows(self, keep: Callable[[SimulatedJob], bool]) -> Iterator[tuple[SimulatedJob, float, bool]]:
        """Jobs that are kept and are nobody's attack, with their bounds and whether they were admitted."""
        for job, bound, admitted in zip(self.jobs, self.bounds, self.admitted, strict=True):
            if keep(job) and not job.attacker:
                yield job, bound, admitted


def play(jobs: list[SimulatedJob], method: Method, *, reporter: Reporter = report, tries: bool = True) -> Run:
    """Submits the jobs one after the other; reports arrive after their delay."""
    run, pending = Run(jobs), list[tuple[int, int]]()
    for job in jobs:
        while pending and pending[0][0] <= job.number:
            ended = jobs[heapq.heappop(pending)[1]]
            method.learn(ended, reporter(ended))
        bound = method.bound(job)
        run.bounds.append(bound)
        run.admitted.append(bound <= job.card)
        if run.admitted[-1] or (tries and job.override):
            heapq.heappush(pending, (job.number + job.delay, job.number))
    return run


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Of a run: shares, and the mean unused headroom in GB."""

    miss: float
    oom_among_admitted: float
    false_rejections: float
    waste: float
    jobs: int


def figures(run: Run, keep: Callable[[SimulatedJob], bool]) -> Figures:
    """The figures of the jobs that are kept."""
    rows = list(run.rows(keep))
    admitted = [job for job, _, was in rows if was]
    fitting = [(job, was) for job, _, was in rows if job.need <= job.card]
    return Figures(
        miss=_share(job.need > bound for job, bound, _ in rows),
        oom_among_admitted=_share(job.need > job.card for job in admitted),
        false_rejections=_share(not was for _, was in fitting),
        waste=float(np.mean([bound - job.need for job, bound, _ in rows])),
        jobs=len(rows),
    )


def _share(hits: Iterator[bool]) -> float:
    found = list(hits)
    return sum(found) / max(1, len(found))
