"""One simulated cluster in every setting, and what is measured there. Shares, and GB."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache

from tests.bench.cluster_methods import FixedMargin, Learned
from tests.bench.cluster_play import Method, Run, figures, play
from tests.bench.cluster_sim import BASE, SHAPES, SLIMMED, UPGRADED, Reporter, SimulatedJob, World, attacked, cluster, greedy, report

Figures = Mapping[str, float]
Keep = Callable[[SimulatedJob], bool]


def strict() -> Learned:
    """α = 1 % for every job."""
    return Learned(alpha=0.01, careful=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A method in a world. `attacker`: one user with a tenth of the jobs needs 1.4 times what is predicted."""

    method: Callable[[], Method] = strict
    world: World = BASE
    attacker: bool = False
    reporter: Reporter = report
    tries: bool = True


SETTINGS: Mapping[str, Setting] = {
    "fixed": Setting(method=lambda: FixedMargin(0.15)),
    "strict": Setting(),
    "policy": Setting(method=Learned),
    "attacked": Setting(attacker=True),
    "wrong prior": Setting(method=lambda: Learned(alpha=0.01, careful=None, prior_offset=6.0), tries=False),
    "greedy": Setting(reporter=greedy(0.0)),
    "greedy, told": Setting(reporter=greedy(1.0)),
    "still": Setting(world=World(drift=False)),
    "poisoned": Setting(world=World(poison=0.03)),
    **{shape: Setting(world=World(shape=shape)) for shape in SHAPES},
}
BIN_EDGES = (0.0, 0.005, 0.02, 0.05, 0.1, 0.2, 0.5)
NEW_GROUP_JOBS = 30
GROUP_JOBS = 60
BAD_GROUP_MISS = 0.04


@dataclass(slots=True)
class Trial:
    """One setting of one seed: the run, and the method as it ended."""

    run: Run
    method: Method

    def figures(self) -> Figures:
        """Everything that a bar may ask for. The first tenth of the stream does not count."""
        jobs = self.run.jobs
        start, half, end = (part * len(jobs) // 10 for part in (1, 5, 9))
        found = figures(self.run, lambda job: job.number >= start)
        return {
            "miss": found.miss,
            "oom": found.oom_among_admitted,
            "rejected": found.false_rejections,
            "waste": found.waste,
            "admitted late": sum(self.run.admitted[half:]),
            "slimmed waste": figures(self.run, lambda job: job.framework == SLIMMED and job.number >= end).waste,
            "drift miss": self._miss(self._upgraded()),
            "new group miss": self._miss(self._new_groups()),
            "bad groups": sum(self._misses_of_groups(start)),
            **self._learned(),
        }

    def _miss(self, numbers: Iterator[int]) -> float:
        jobs = self.run.jobs
        found = [jobs[number].need > self.run.bounds[number] for number in numbers if not jobs[number].attacker]
        return sum(found) / max(1, len(found))

    def _upgraded(self) -> Iterator[int]:
        """Submissions 40 to 120 after the silent upgrade: the reports of the first are still under way."""
        jobs = self.run.jobs
        return iter([job.number for job in jobs[len(jobs) // 2 :] if job.framework == UPGRADED][40:120])

    def _new_groups(self) -> Iterator[int]:
        """The first submissions of groups that appear late."""
        seen: Counter[int] = Counter()
        first = {job.group for job in self.run.jobs[: 6 * len(self.run.jobs) // 10]}
        for job in self.run.jobs:
            seen[job.group] += 1
            if job.group not in first and seen[job.group] <= NEW_GROUP_JOBS:
                yield job.number

    def _misses_of_groups(self, start: int) -> Iterator[bool]:
        """Of each group with enough jobs, whether it misses too often."""
        jobs = [job for job in self.run.jobs[start:] if not job.attacker]
        for group, count in Counter(job.group for job in jobs).items():
            if count >= GROUP_JOBS:
                yield self._miss(job.number for job in jobs if job.group == group) > BAD_GROUP_MISS

    def _learned(self) -> Figures:
        if not isinstance(self.method, Learned):
            return {}
        reliability = {f"bin {edge:g} {what}": value for edge, *values in self._bins() for what, value in zip(_BIN, values, strict=True)}
        return {
            "alarms": self.method.calibrator.alarms,
            "honest quarantined": self.method.quarantined / len(self.run.jobs),
            "label quality": self.method.calibrator.snapshot().trust.label_quality,
            "distrusted": self.method.distrusted / len(self.run.jobs),
            **reliability,
        }

    def _bins(self) -> Iterator[tuple[float, int, float, int]]:
        """Lower edge of the predicted probability, jobs, sum of the predicted ones, jobs out of memory."""
        assert isinstance(self.method, Learned)
        pairs = [
            (self.method.chances[job.number], job.need > job.card) for job in self.run.jobs[len(self.run.jobs) // 10 :] if not job.attacker
        ]
        for low, high in zip(BIN_EDGES, (*BIN_EDGES[1:], 2.0), strict=True):
            inside = [(chance, died) for chance, died in pairs if low <= chance < high]
            yield low, len(inside), sum(chance for chance, _ in inside), sum(died for _, died in inside)


_BIN = ("jobs", "predicted", "died")


def trial(seed: int, setting: Setting) -> Trial:
    """Plays one setting of one cluster."""
    jobs = _cluster(seed, setting.world)
    if setting.attacker:
        jobs = attacked(jobs, seed, factor=1.4)
    method = setting.method()
    return Trial(play(jobs, method, reporter=setting.reporter, tries=setting.tries), method)


_cluster = lru_cache(maxsize=1)(cluster)
"""Settings of one world follow each other."""


@cache
def measure(seed: int) -> Mapping[str, Figures]:
    """Figures of every setting of one seed."""
    return {name: trial(seed, setting).figures() for name, setting in SETTINGS.items()}
