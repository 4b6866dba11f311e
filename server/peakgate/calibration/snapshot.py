"""What the calibration says at one moment: a frozen value that Predict reads while the calibrator goes on learning."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from peakgate.calibration import prior
from peakgate.calibration.curve import Curve
from peakgate.calibration.level import EVERYTHING, Node, is_textbook, level_of

DEFAULT_COVERAGE = 0.95
"""The coverage of the margins that `groups` prints: the policy that cost least over ten simulated clusters admits at 95 %."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """An upper bound of the requirement, and the observations of the job's own group behind it."""

    bound_bytes: int
    observations: int
    group: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSummary:
    """A group for people: the margin over a typical requirement, and the median of needed over predicted."""

    group: str
    observations: int
    margin_ratio: float
    median_ratio: float


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupFacts:
    """What is kept of a group beside its level: its rows, and the typical ones among them."""

    observations: int
    typical_required_bytes: int
    median_ratio: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Levels by group and one pooled curve. Without observations: the prior.

    need = required + spread(required) · (level + width · score), where the score follows the curve. A textbook group has
    no runtime in its figures, so its margin is its level alone, and 0 before anything was observed.
    """

    version: str = "0.0"
    nodes: Mapping[str, Node] = field(default_factory=dict)
    facts: Mapping[str, GroupFacts] = field(default_factory=dict)
    curve: Curve = field(default_factory=Curve)

    def bound(self, *, group: str, required_bytes: int, coverage: float) -> Bound:
        """The size that the need of the next job stays under with probability `coverage`, in (0, 1).

        Rises with the requirement and with the coverage. Raises ValueError for another coverage or a negative requirement.
        """
        if not 0 < coverage < 1:
            raise ValueError(f"coverage is {coverage}; it must lie between 0 and 1, both excluded")
        score = 0.0 if is_textbook(group) else self.curve.quantile(1 - coverage)
        bound_bytes = math.ceil(self._need(group, required_bytes, score))
        return Bound(bound_bytes=bound_bytes, observations=self._observations(group), group=group)

    def oom_probability(self, *, group: str, required_bytes: int, usable_bytes: int) -> float:
        """Probability that the next job needs more than `usable_bytes`: at most 1 − coverage where the bound fits.

        Raises ValueError for a negative requirement.
        """
        if is_textbook(group):
            return float(math.ceil(self._need(group, required_bytes, 0.0)) > usable_bytes)
        slack = usable_bytes - self._need(group, required_bytes, 0.0)
        return self.curve.survival(slack / (prior.spread_bytes(required_bytes) * self._width(group)))

    def groups(self) -> tuple[GroupSummary, ...]:
        """The groups that were observed, by name."""
        return tuple(self._summary(group, self.facts[group]) for group in sorted(self.facts))

    def _summary(self, group: str, facts: GroupFacts) -> GroupSummary:
        required_bytes = facts.typical_required_bytes
        bound = self.bound(group=group, required_bytes=required_bytes, coverage=DEFAULT_COVERAGE)
        return GroupSummary(
            group=group,
            observations=facts.observations,
            margin_ratio=bound.bound_bytes / required_bytes - 1,
            median_ratio=facts.median_ratio,
        )

    def _need(self, group: str, required_bytes: int, score: float) -> float:
        if required_bytes < 0:
            raise ValueError(f"required_bytes is {required_bytes}; it must not be negative")
        scores = level_of(self.nodes, group) + self._width(group) * score
        return required_bytes + prior.spread_bytes(required_bytes) * scores

    def _width(self, group: str) -> float:
        return prior.width(self.nodes[group].exact_rows if group in self.nodes and group != EVERYTHING else 0)

    def _observations(self, group: str) -> int:
        return self.facts[group].observations if group in self.facts else 0
