"""The acceptance criteria of the calibration, A1 to A14, on simulated clusters. The thresholds were set after seeing results on seeds
1000 to 1003: they guard against regressions there, and say something on the other seeds only."""

from __future__ import annotations

import json
import math
import random
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from tests.bench.cluster_methods import FixedMargin, Learned
from tests.bench.cluster_sim import BASE, SHAPES, SLIMMED, UPGRADED, Figures, Run, SimulatedJob, World, attacked, cluster, figures, greedy, play

from peakgate.calibration import Calibrator, Observation, Subject, replay

Keep = Callable[[SimulatedJob], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One figure against its limit. `seed` is the worst one's, where one is."""

    name: str
    figure: float
    limit: float
    meaning: str
    seed: int = 0

    @property
    def holds(self) -> bool:
        """Whether the figure stays at or under the limit."""
        return self.figure <= self.limit


def after_the_start(jobs: Sequence[SimulatedJob]) -> Keep:
    """From a tenth of the stream on."""
    first = len(jobs) // 10
    return lambda job: job.number >= first


def strict() -> Learned:
    """α = 1 % for every job."""
    return Learned(alpha=0.01, careful=None)


def policy() -> Learned:
    """α = 5 %, and 1 % where the calibration is unsure."""
    return Learned()


@dataclass
class Trials:
    """Runs on the base cluster by seed, each made once."""

    seeds: Sequence[int]

    def __post_init__(self) -> None:
        self.jobs = {seed: cluster(seed) for seed in self.seeds}
        self.strict = {seed: play(self.jobs[seed], strict()) for seed in self.seeds}
        self.policy = {seed: play(self.jobs[seed], policy()) for seed in self.seeds}
        self.fixed = {seed: play(self.jobs[seed], FixedMargin(0.15)) for seed in self.seeds}



def of(runs: dict[int, Run], keep: Callable[[Sequence[SimulatedJob]], Keep] = after_the_start) -> dict[int, Figures]:
    """Figures by seed."""
    return {seed: figures(run, keep(run.jobs)) for seed, run in runs.items()}


def mean(found: Iterable[float]) -> float:
    """Of the seeds."""
    return fmean(found)


def worst(name: str, found: dict[int, float], limit: float, meaning: str) -> Bar:
    """Every seed must hold it."""
    seed = max(found, key=lambda each: found[each])
    return Bar(name=name, figure=found[seed], limit=limit, meaning=meaning, seed=seed)
