"""What a shadow shows beside the active calibration: each row's need is held against both bounds before either learns it.

Such a prequential score (Dawid, "Present position and potential developments: the prequential approach", JRSS A 147, 1984) needs no rows
that are held back, and nobody can have been fitted to it. The rules were set with the calibration's own bars: a shadow keeps the promised
coverage, in every group of which there is enough to tell, and pays for it with no more memory than the active one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from peakgate.calibration.observation import Observation
from peakgate.calibration.prior import GIGABYTE, MIN_SCORES
from peakgate.calibration.snapshot import Snapshot
from peakgate.calibration.subject import Subject

ROWS = 500
"""Exact rows that tell a miss rate of 1.2 α from one of 2 α: at α = 5 % they lie three standard errors apart (binomial)."""
ROWS_AGAINST_NOTHING = MIN_SCORES
"""Exact rows against an active calibration that began with nothing. There is nothing learned to lose by then, and from so many scores on
the shadow has a quantile of its own, which is all that the trial can be about."""
MOST_MISSES = 1.2
"""Times α, over all rows."""
GROUP_ROWS = 60
MOST_GROUP_MISSES = 4.0
"""Times α, of a group with at least GROUP_ROWS rows."""
MOST_BOUND = 1.05
"""Times the mean bound of the active calibration."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule of promotion: its figure so far, its limit, and whether it holds. `at_least`: the limit is one from below."""

    name: str
    figure: float
    limit: float
    at_least: bool = False
    group: str = ""
    """The group whose figure it is."""

    @property
    def holds(self) -> bool:
        """Whether the figure is within its limit. A figure that is not known yet (NaN) is not."""
        return self.figure >= self.limit if self.at_least else self.figure <= self.limit


@dataclass(slots=True, kw_only=True)
class Trial:
    """Counts of the rows that both were scored by. `coverage` is the policy's at the start; `rows_needed` are exact rows."""

    coverage: float
    rows_needed: int = ROWS
    rows: int = 0
    exact_rows: int = 0
    misses: int = 0
    active_misses: int = 0
    bound_sum: float = 0.0
    active_bound_sum: float = 0.0
    """GB, over exact rows."""
    groups: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Rows and misses of each."""

    def bounds(self, subject: Subject, active: Snapshot, shadow: Snapshot) -> tuple[int, int]:
        """What both promise for a job, in bytes: the active one first. To be asked before they learn what became of it."""
        return active.bound(subject, coverage=self.coverage).bound_bytes, shadow.bound(subject, coverage=self.coverage).bound_bytes

    def score(self, observation: Observation, active_bytes: int, shadow_bytes: int) -> None:
        """Counts a row that was learned. One that is only a lower end says something where it passes a bound, and nothing else."""
        need = observation.need_bytes
        self._count(observation, missed=need > shadow_bytes, active_missed=need > active_bytes)
        if observation.exact:
            self.exact_rows += 1
            self.bound_sum += shadow_bytes / GIGABYTE
            self.active_bound_sum += active_bytes / GIGABYTE

    def _count(self, observation: Observation, *, missed: bool, active_missed: bool) -> None:
        self.active_misses += active_missed
        if observation.exact or missed:
            self.rows += 1
            self.misses += missed
            rows, misses = self.groups.get(observation.subject.group, (0, 0))
            self.groups[observation.subject.group] = rows + 1, misses + missed

    @property
    def passed(self) -> bool:
        """Whether every rule holds."""
        return all(rule.holds for rule in self.rules())

    def rules(self) -> tuple[Rule, ...]:
        """Each rule with what was shown so far."""
        alpha = 1 - self.coverage
        group, group_rate = self._worst_group()
        return (
            Rule(name="exact_rows", figure=self.exact_rows, limit=self.rows_needed, at_least=True),
            Rule(name="miss_rate", figure=_ratio(self.misses, self.rows), limit=MOST_MISSES * alpha),
            Rule(name="worst_group_miss_rate", figure=group_rate, limit=MOST_GROUP_MISSES * alpha, group=group),
            Rule(name="mean_bound_ratio", figure=_ratio(self.bound_sum, self.active_bound_sum), limit=MOST_BOUND),
        )

    def _worst_group(self) -> tuple[str, float]:
        """Of those with enough rows; nobody and 0 where no group has."""
        rates = [(misses / rows, group) for group, (rows, misses) in sorted(self.groups.items()) if rows >= GROUP_ROWS]
        rate, group = max(rates, default=(0.0, ""))
        return group, rate

    def state(self) -> dict[str, object]:
        """Everything, as JSON can hold it."""
        counts = {name: getattr(self, name) for name in _COUNTS}
        return counts | {"groups": {group: list(pair) for group, pair in sorted(self.groups.items())}}

    @classmethod
    def from_state(cls, state: Mapping[str, object]) -> Trial:
        """The trial whose `state` that was. Raises KeyError, TypeError or ValueError for anything else."""
        groups = state["groups"]
        if not isinstance(groups, dict):
            raise TypeError("groups has a wrong type")
        trial = cls(**{name: kind(str(state[name])) for name, kind in _COUNTS.items()})  # type: ignore[arg-type]  # by the table below
        trial.groups = {str(group): (int(rows), int(misses)) for group, (rows, misses) in groups.items()}
        return trial


_COUNTS: dict[str, type[int] | type[float]] = {
    "coverage": float,
    "rows_needed": int,
    "rows": int,
    "exact_rows": int,
    "misses": int,
    "active_misses": int,
    "bound_sum": float,
    "active_bound_sum": float,
}


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else math.nan
