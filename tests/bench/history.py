"""`python -m tests.bench.history DATABASE-URL [SEED [JOBS]]`: the history of a simulated cluster, as the service keeps it.

The jobs of `cluster_sim` are predicted, admitted or rejected, reported and learned from by the service's own judge, learner and store,
thirty days of them up to now; a framework drifts in the middle. So there is something to look at with `peakgate calibration report`.
"""

from __future__ import annotations

import asyncio
import heapq
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from tests.bench.cluster_sim import FRAMEWORKS, NAMES, Report, Reporter, SimulatedJob, World, cluster, greedy

from peakgate.calibration import Calibrator, Subject
from peakgate.server.answer import pack
from peakgate.server.judge import Judge
from peakgate.server.learning import Learner, LearningRules
from peakgate.server.lease import LeaseKeeper
from peakgate.server.logs import QuietLogger
from peakgate.server.memory import MemoryModel, memory_model
from peakgate.server.metrics import NullMetrics
from peakgate.server.policy import Policy
from peakgate.server.store.base import Store
from peakgate.server.store.records import EventRow, PeakRow, PredictionContent, PredictionRow
from peakgate.server.store.sql import open_store
from peakgate.server.subjects import subject_text
from peakgate.v1.prediction_pb2 import Capacity, Peak, PredictResponse, Verdict
from peakgate.v1.training_job_pb2 import Model, TrainingJob

GB = 10**9
SECOND = 1_000_000
DAYS = 30
LEARNED_AT_ONCE = 8
"""Ended jobs that one version takes in: one for each would write as many versions."""
STATISTICS_SHARE = 0.6
"""Of the jobs, whose in-process helper tells what is allocated."""


JOB = TrainingJob(model=Model(parameters=GB)).SerializeToString()
"""A document for all of them: the figures of a job are the simulation's, not the memory model's."""


@dataclass
class Clock:
    """The moment of the simulation, in microseconds."""

    now_us: int

    def __call__(self) -> int:
        """The moment."""
        return self.now_us


@dataclass
class Site:
    """A service without its doors. `reporter` says what an agent sees of a job."""

    store: Store
    clock: Clock
    memory: MemoryModel = field(default_factory=memory_model)
    reporter: Reporter = field(default_factory=lambda: greedy(STATISTICS_SHARE))

    def __post_init__(self) -> None:
        self.judge = Judge(self.memory, Calibrator(epoch=self.memory.version).snapshot(), Policy())
        metrics, log = NullMetrics(), QuietLogger()
        self.keeper = LeaseKeeper(self.store, metrics=metrics, log=log)
        self.learner = Learner(
            self.judge, self.store, self.keeper, LearningRules(settle_seconds=0), clock=self.clock, metrics=metrics, log=log
        )

    def submit(self, job: SimulatedJob) -> bool:
        """Predicts a job and stores that. Returns whether it is admitted."""
        subject, policy, snapshot = subject_of(job), self.judge.policy, self.judge.snapshot
        coverage = max(policy.coverage, policy.careful_coverage) if snapshot.is_unsure(subject) else policy.coverage
        bound = snapshot.trusted_bound(subject, coverage=coverage)
        admitted = bound.bound_bytes <= subject.card_bytes
        answer = PredictResponse(
            verdict=Verdict.VERDICT_ADMIT if admitted else Verdict.VERDICT_REJECT,
            peak=Peak(required_bytes=subject.required_bytes, bound_bytes=bound.bound_bytes, coverage=coverage),
            capacity=Capacity(gpu=NAMES[job.gpu], total_bytes=subject.card_bytes, usable_bytes=subject.card_bytes),
        )
        content = PredictionContent(
            job=JOB,
            job_digest=f"job {job.number}",
            job_name=f"job {job.number}",
            verdict="ADMIT" if admitted else "REJECT",
            group=subject.group,
            required_bytes=subject.required_bytes,
            device_bytes=subject.device_bytes,
            bound_bytes=bound.bound_bytes,
            total_bytes=subject.card_bytes,
            model_version=self.memory.version,
            calibration_version=snapshot.version,
            answer=pack(answer),
            subject=subject_text(subject),
        )
        row = PredictionRow(prediction=name_of(job), created_us=self.clock(), request_id=None, request_digest=None, content=content)
        self.store.add_predictions([row])
        return admitted

    def end(self, job: SimulatedJob) -> None:
        """Reports what an agent saw of a job, and its end."""
        seen = self.reporter(job)
        self.store.merge_peaks(list(peaks_of(job, seen, now_us=self.clock())))
        ran_out = job.need > job.card or job.kind == "oom_other"
        word = "oom" if ran_out else "finished" if seen.exact else "failed"
        self.store.add_event(
            EventRow(
                cluster="c",
                job=str(job.number),
                restart=0,
                prediction=name_of(job),
                event=word,
                event_us=self.clock(),
                exit_code=None if word == "oom" else int(word != "finished"),
            )
        )

    async def learn(self) -> None:
        """Takes in what has ended."""
        await self.keeper.keep()
        while await self.learner.learn():
            pass


def name_of(job: SimulatedJob) -> str:
    """Of its prediction."""
    return f"predictions/{job.number:032x}"


def subject_of(job: SimulatedJob) -> Subject:
    """The job as the service knows it. Its own figures are needs, so its device peak is its requirement."""
    required = int((job.predicted + job.prior) * GB)
    framework = f"huggingface-4.57/{FRAMEWORKS[job.framework]}"
    return Subject(
        group=f"{NAMES[job.gpu]}gb/{framework}/{'several nodes' if job.nodes else 'one node'}",
        framework=framework,
        card_bytes=int(job.card * GB),
        required_bytes=required,
        device_bytes=required,
        runtime_bytes=int(job.prior * GB),
        activation_bytes=int(job.activations * GB),
        state_bytes=int(job.states * GB),
    )


def peaks_of(job: SimulatedJob, seen: Report, *, now_us: int) -> Iterator[PeakRow]:
    """The whole job on its GPU; with the helper, its process, whose allocator holds a tenth more than is in use, or half for some."""
    value = max(1, int(seen.value * GB))
    whole = PeakRow(
        cluster="c",
        node=f"n{job.number % 40}",
        gpu_uuid=f"GPU-{job.number % 8}",
        job=str(job.number),
        restart=0,
        prediction=name_of(job),
        pid=0,
        pid_start_ticks=0,
        gpu_name=NAMES[job.gpu],
        gpu_total_bytes=int(job.card * GB),
        peak_bytes=value,
        source="sampled",
        torch_allocated_bytes=0,
        torch_reserved_bytes=0,
        first_us=now_us - 600 * SECOND,
        last_us=now_us,
        peak_us=now_us,
        samples=60,
        gaps=0,
        flags=0,
        ended=1,
        uid=1000 + job.user,
        boot_id="b",
        agent_version="1",
        driver_version="550",
    )
    yield whole
    if seen.told:
        reserved = int(value * 0.98)
        allocated = int(reserved / (1.5 if job.number % 25 == 0 else 1.1))
        process = replace(whole, pid=9, pid_start_ticks=1, uid=1000 + job.user)
        yield process
        yield replace(
            process, source="torch", peak_bytes=reserved, torch_allocated_bytes=allocated, torch_reserved_bytes=reserved, steps_done=100
        )


async def play(site: Site, jobs: list[SimulatedJob], *, begin_us: int, step_us: int) -> None:
    """Submits the jobs one after the other; those that run end after their delay."""
    await site.learner.load()
    pending: list[tuple[int, int]] = []
    by_number = {job.number: job for job in jobs}
    waiting = 0
    for place, job in enumerate(jobs):
        site.clock.now_us = begin_us + place * step_us
        while pending and pending[0][0] <= place:
            site.end(by_number[heapq.heappop(pending)[1]])
            waiting += 1
        if waiting >= LEARNED_AT_ONCE:
            await site.learn()
            waiting = 0
        if site.submit(job) or job.override:
            heapq.heappush(pending, (place + job.delay, job.number))
    await site.learn()


def main(url: str, seed: int = 1, count: int = 1500) -> None:
    """Writes the history of `count` jobs into the database."""
    now_us = time.time_ns() // 1000
    begin_us = now_us - DAYS * 86_400 * SECOND
    store = open_store(url)
    site = Site(store, Clock(begin_us))
    asyncio.run(play(site, cluster(seed, World(jobs=count)), begin_us=begin_us, step_us=(now_us - begin_us) // count))
    store.close()


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:4]))
