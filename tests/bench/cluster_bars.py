"""The acceptance criteria of the calibration, A1 to A14, on simulated clusters.

The thresholds were set after seeing results on seeds 1000 to 1003: they guard against regressions there, and say something on other seeds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from tests.bench.bounds import bar
from tests.bench.cluster_sim import SHAPES
from tests.bench.cluster_trials import BIN_EDGES, Figures

Measured = Mapping[int, Mapping[str, Figures]]
"""Figures by seed and setting."""
Setting = Mapping[str, Figures]
BIN_JOBS = 200
TINY = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A figure that must stay at or under its limit: of every seed, or of the mean of the seeds."""

    name: str
    meaning: str
    limit: float
    each: bool
    figure: Callable[[Setting], float]
    over: Callable[[Setting], float] | None = None
    """What the figure is a ratio to; of means when the bar is one of means."""
    fewest_seeds: int = 1
    """Below so many the mean of a small count says little."""

    def by_seed(self, measured: Measured) -> dict[int, float]:
        """The figure of each seed alone."""
        return {seed: self._figure({seed: found}) for seed, found in measured.items()}

    def worst(self, measured: Measured) -> tuple[float, int]:
        """The figure that must hold, and the seed whose own figure is the largest."""
        found = self.by_seed(measured)
        seed = max(found, key=lambda each: found[each])
        return found[seed] if self.each else self._figure(measured), seed

    def _figure(self, measured: Measured) -> float:
        figure = fmean(self.figure(found) for found in measured.values())
        return figure if self.over is None else figure / max(TINY, fmean(self.over(found) for found in measured.values()))


def of(setting: str, name: str) -> Callable[[Setting], float]:
    """One figure of one setting."""
    return lambda found: found[setting][name]


def mean(name: str, setting: str, figure: str, limit: float, meaning: str, *, over: str = "") -> Bar:
    """The mean of the seeds, or the ratio of two means."""
    return Bar(name=name, meaning=meaning, limit=limit, each=False, figure=of(setting, figure), over=of(over, figure) if over else None)


def each(name: str, setting: str, figure: str, limit: float, meaning: str, *, over: str = "") -> Bar:
    """Every seed."""
    return Bar(name=name, meaning=meaning, limit=limit, each=True, figure=of(setting, figure), over=of(over, figure) if over else None)


def bad_groups(found: Setting) -> float:
    """Groups that miss too often, mean of the stress worlds."""
    return fmean(found[shape]["bad groups"] for shape in SHAPES)


BAD_GROUPS = "groups that miss more than 4 %"
BARS: Sequence[Bar] = (
    mean("A1", "strict", "miss", 0.013, "misses at α = 1 %"),
    each("A1", "strict", "miss", 0.017, "misses at α = 1 %"),
    mean("A1", "strict", "rejected", 0.09, "false rejections at α = 1 %"),
    mean("A1", "strict", "waste", 2.7, "GB between bound and need at α = 1 %"),
    each("A2", "policy", "oom", 0.003, "out of memory among the admitted, policy"),
    each("A2", "policy", "rejected", 0.06, "false rejections, policy"),
    mean("A2", "policy", "waste", 1.5, "GB between bound and need, policy"),
    mean("A2", "policy", "rejected", 0.5, "false rejections, policy over 15 % of the card", over="fixed"),
    mean("A2", "policy", "oom", 0.5, "out of memory among the admitted, policy over 15 % of the card", over="fixed"),
    each(
        "half",
        "strict",
        "miss",
        bar("calibration_misses_over_fixed_ratio"),
        "misses at α = 1 % over those of 15 % of the card …",
        over="fixed",
    ),
    each("half", "strict", "rejected", bar("calibration_rejections_over_fixed_ratio"), "… at no more false rejections", over="fixed"),
    mean("A3", "policy", "new group miss", 0.05, "misses of the first 30 jobs of a new group, policy"),
    mean("A4", "policy", "drift miss", 0.08, "misses of submissions 40 to 120 after a silent upgrade, policy"),
    mean("A4", "strict", "drift miss", 0.02, "the same at α = 1 %"),
    each("A5", "still", "alarms", 1.0, "alarms in 6000 jobs without drift"),
    mean("A6", "strict", "slimmed waste", 1.2, "waste of a framework that came to need less, over that without drift", over="still"),
    mean("A7", "poisoned", "rejected", 1.25, "false rejections with 3 % nonsense, over the base", over="strict"),
    mean("A8", "attacked", "rejected", 1.25, "false rejections of the others under attack, over the base", over="strict"),
    each("A8", "attacked", "honest quarantined", 0.001, "honest rows kept out for their user under attack, of all jobs"),
    each("A8", "strict", "honest quarantined", 0.001, "the same in the base world"),
    mean("A9", "wrong prior", "rejected", 1.25, "false rejections with a prior 6 GB too high and no tries, over the base", over="strict"),
    each("A9", "strict", "admitted late", 1.1, "jobs admitted in the second half, the base over that (no deadlock)", over="wrong prior"),
    mean("A13", "greedy, told", "rejected", 1.1, "false rejections with a greedy allocator that tells, over the base", over="strict"),
    mean("A13", "strict", "rejected", 1.1, "the base over that", over="greedy, told"),
    mean("A13", "greedy", "rejected", 0.2, "false rejections with a greedy allocator that does not tell"),
    each("A13", "greedy", "label quality", 0.0, "label quality where nobody tells"),
    *(mean("A14", shape, "miss", 0.015, f"misses at α = 1 %, {shape}") for shape in SHAPES),
    *(replace(mean("A14", shape, "bad groups", 1.0, f"{BAD_GROUPS}, {shape}"), fewest_seeds=10) for shape in SHAPES),
    Bar(name="A14", meaning=f"{BAD_GROUPS}, mean of these worlds", limit=1.0, each=False, figure=bad_groups),
    mean("trust", "still", "distrusted", 0.01, "jobs at whose submission a sound calibration was not trusted"),
)


def reliability(measured: Measured, setting: str = "strict") -> tuple[float, float]:
    """A10: the largest distance of the predicted from the observed probability of running out of memory, and the lower edge of its bin."""
    worst, at = 0.0, 0.0
    for edge in BIN_EDGES:
        names = (f"bin {edge:g} {what}" for what in ("jobs", "predicted", "died"))
        jobs, predicted, died = (math.fsum(found[setting][name] for found in measured.values()) for name in names)
        if jobs >= BIN_JOBS and abs(predicted - died) / jobs > worst:
            worst, at = abs(predicted - died) / jobs, edge
    return worst, at
