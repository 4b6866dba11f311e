"""What the calibration says at one moment: a frozen value that Predict reads while the calibrator goes on learning."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from peakgate.calibration import prior
from peakgate.calibration.curve import Curve
from peakgate.calibration.node import STALE_SECONDS, YOUNG_ROWS, NodeView, Views, is_new
from peakgate.calibration.regression import dot
from peakgate.calibration.subject import Subject
from peakgate.calibration.trust import FIXED_MARGIN, GROUP_STALE, SAFE_COVERAGE, Trust
from peakgate.calibration.versions import BUCKET


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """An upper bound of the need, and what it rests on. `clamped`: the residual met its limit, so the coverage is not promised.

    `distrust`: why the calibration was not trusted, and the bound is the wide one; empty when it was.
    """

    bound_bytes: int
    observations: int
    group: str
    clamped: bool = False
    distrust: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Nodes by name, users with their leanings, one pooled curve. Without observations: the prior.

    need = counted + residual; residual = prior + Σ θ·x + scale · (leaning + spread · score), where the score follows the curve.
    """

    version: str = "0.0"
    nodes: Views = field(default_factory=dict)
    versions: Mapping[str, int] = field(default_factory=dict)
    """Number of each known version, by which nodes refer to it."""
    curve: Curve = field(default_factory=Curve)
    leanings: Mapping[str, float] = field(default_factory=dict)
    """Scales by which the jobs of a user need more than others of their levels."""
    suspects: Mapping[tuple[str, str], float] = field(default_factory=dict)
    """(user, framework) -> scores by which that user's jobs are bounded higher."""
    trust: Trust = field(default_factory=Trust)
    newest_at: float = -math.inf
    """End of the newest attempt that was taken in, in seconds since the epoch."""

    def bound(self, subject: Subject, *, coverage: float) -> Bound:
        """The size that the need stays under with probability `coverage`, in (0, 1).

        Rises with the requirement and with the coverage. Raises ValueError for another coverage.
        """
        if not 0 < coverage < 1:
            raise ValueError(f"coverage is {coverage}; it must lie between 0 and 1, both excluded")
        if subject.is_textbook:
            return Bound(bound_bytes=subject.required_bytes, observations=0, group=subject.group)
        residual = self._level(subject) + self._margin(subject, 1 - coverage)
        kept = self._clipped(subject, residual)
        return Bound(
            bound_bytes=math.ceil((subject.counted + kept) * prior.GIGABYTE),
            observations=self.observations(subject),
            group=subject.group,
            clamped=kept < residual,
        )

    def trusted_bound(self, subject: Subject, *, coverage: float, now: float | None = None, told: tuple[str, ...] = ()) -> Bound:
        """The bound where the calibration can be trusted; else the largest of it, that at 99 % and a margin of 15 % of the card.

        `now` in seconds since the epoch, by default the newest end; `told` are reasons for distrust that the service counts.
        """
        bound = self.bound(subject, coverage=coverage)
        distrust = (*self.trust.reasons(1 - coverage), *self._stale(subject, self.newest_at if now is None else now), *told)
        if not distrust or subject.is_textbook:
            return bound
        fixed = subject.required_bytes + math.ceil(FIXED_MARGIN * subject.card_bytes)
        safe = self.bound(subject, coverage=max(coverage, SAFE_COVERAGE)).bound_bytes
        return replace(bound, bound_bytes=max(safe, fixed), distrust=distrust)

    def oom_probability(self, subject: Subject, *, usable_bytes: int) -> float:
        """Probability that the job needs more than `usable_bytes`."""
        if subject.is_textbook:
            return float(subject.required_bytes > usable_bytes)
        slack = usable_bytes / prior.GIGABYTE - subject.counted - self._level(subject)
        return self.curve.survival(slack / self._scale(subject) - self._widening(subject))

    def knows(self, user: str) -> bool:
        """Whether something was learned of the user that moves the bounds of their jobs."""
        return bool(user) and (user in self.leanings or any(user == suspect for suspect, _ in self.suspects))

    def names(self, node: NodeView) -> tuple[str, ...]:
        """Of the versions that a level met and that are known, the one that ran last at the end."""
        names = {number: name for name, number in self.versions.items()}
        return tuple(names[number] for number in node.versions if number in names)

    def is_unsure(self, subject: Subject) -> bool:
        """Whether a smaller α is due: the group is young, an alarm is open, or the version has not been seen."""
        group = self.nodes.get(subject.levels[1])
        if group is None or group.exact_rows < YOUNG_ROWS:
            return True
        return any(node.alarmed or self._is_new(subject, node) for node in self._path(subject))

    def observations(self, subject: Subject) -> int:
        """Exact rows of its own group."""
        group = self.nodes.get(subject.levels[1])
        return group.exact_rows if group is not None else 0

    def _is_new(self, subject: Subject, node: NodeView) -> bool:
        """Whether the job states a version that the level has not met, or that nobody else runs."""
        return bool(subject.version) and is_new(self.versions.get(subject.version, BUCKET), node.versions)

    def _stale(self, subject: Subject, now: float) -> tuple[str, ...]:
        group = self.nodes.get(subject.levels[1])
        return (GROUP_STALE,) if group and group.exact_rows and now - group.last_exact_at > STALE_SECONDS else ()

    def _path(self, subject: Subject) -> list[NodeView]:
        return [self.nodes[name] for name in subject.levels if name in self.nodes]

    def _level(self, subject: Subject) -> float:
        x = subject.features
        learned = sum(dot(node.theta, x) for node in self._path(subject))
        return subject.prior_residual + learned + self.leanings.get(subject.user, 0.0) * subject.scale

    def _margin(self, subject: Subject, alpha: float) -> float:
        """GB above the level. The quantile's upper limit is one of the scale, however noisy the group."""
        scale = self._scale(subject)
        return min(self.curve.quantile(alpha) * scale, prior.HIGHEST_QUANTILE * subject.scale) + self._widening(subject) * scale

    def _scale(self, subject: Subject) -> float:
        group = self.nodes.get(subject.levels[1])
        return subject.scale * (group.spread if group is not None else 1.0)

    def _widening(self, subject: Subject) -> float:
        alarmed = sum(node.alarmed or self._is_new(subject, node) for node in self._path(subject))
        return prior.ALARM_SCORES * alarmed + self.suspects.get((subject.user, subject.framework), 0.0)

    def _clipped(self, subject: Subject, residual: float) -> float:
        """Within its limits. What is believed of a job that is far too large for its card is above them, and stays."""
        limits = prior.HIGHEST_RESIDUAL_RATIO * subject.card, prior.HIGHEST_RESIDUAL, subject.prior_residual
        return min(max(residual, prior.LOWEST_RESIDUAL), max(limits) if subject.card else math.inf)
