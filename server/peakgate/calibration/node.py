"""What is learned of a framework or of a group: its share of the residual, whether it has moved, which versions it ran."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from peakgate.calibration.drift import RENEWED, Cusum
from peakgate.calibration.prior import GROUP_PRECISION
from peakgate.calibration.regression import Regression, Vector
from peakgate.calibration.spread import Spread

YOUNG_ROWS = 10
"""Exact rows below which a group is young."""
STALE_SECONDS = 30 * 86_400.0
"""A group without an exact row for so long has lost half of its certainty."""
STALE_KEPT = 0.5
VERSIONS = 8
"""Versions that are remembered: while a cluster is upgraded node by node, two of them alternate."""
NUMBERS = 20
"""Of a node's state: nine of the regression, six of the sums, three counts, two of the spread."""


@dataclass(slots=True)
class Node:
    """One level. `versions` are the newest that it met; `last_exact_at` in seconds since the epoch."""

    regression: Regression
    cusum: Cusum = field(default_factory=Cusum)
    spread: Spread = field(default_factory=Spread)
    exact_rows: int = 0
    statistics_rows: int = 0
    last_exact_at: float = 0.0
    versions: tuple[str, ...] = ()

    @classmethod
    def new(cls, name: str) -> Node:
        """A node that has seen nothing."""
        return cls(regression=Regression(certainty=_certainty(name)))

    def meet(self, version: str, finished_at: float) -> None:
        """Before a row is learned: a version that it has not met, or a long silence, costs certainty."""
        if self.versions and is_new(version, self.versions):
            self.regression.forget()
            self.cusum.raise_alarm(RENEWED)
        if is_new(version, self.versions):
            self.versions = (*self.versions, version)[-VERSIONS:]
        if self.exact_rows and finished_at - self.last_exact_at > STALE_SECONDS:
            self.regression.forget(STALE_KEPT)

    def view(self) -> NodeView:
        """As it stands."""
        return NodeView(
            theta=self.regression.theta,
            alarmed=self.cusum.alarm_rows > 0,
            exact_rows=self.exact_rows,
            last_exact_at=self.last_exact_at,
            versions=self.versions,
            spread=self.spread.ratio,
            alarms=self.cusum.alarms,
        )

    def state(self) -> list[object]:
        """Everything, as JSON can hold it."""
        counts = self.exact_rows, self.statistics_rows, self.last_exact_at
        return [*self.regression.state(), *self.cusum.state(), *counts, *self.spread.state(), list(self.versions)]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeView:
    """A node at one moment."""

    theta: Vector
    alarmed: bool
    exact_rows: int
    last_exact_at: float = 0.0
    versions: tuple[str, ...] = ()
    spread: float = 1.0
    alarms: int = 0
    """Since it was first seen."""


Views = Mapping[str, NodeView]


def is_new(version: str, versions: Iterable[str]) -> bool:
    """Whether a version that is known has not been met."""
    return bool(version) and version not in versions


def node_from(name: str, state: list[object]) -> Node:
    """The node whose `state` that was. Raises ValueError or TypeError for anything else."""
    *numbers, versions = state
    values = [float(str(number)) for number in numbers]
    if len(values) != NUMBERS or not isinstance(versions, list):
        raise ValueError(f"a node has {NUMBERS} numbers and a list of versions, not {state}")
    up, up_since, down, down_since, alarm_rows, alarms = values[9:15]
    return Node(
        regression=Regression(certainty=_certainty(name), m=values[:6], v=values[6:9]),
        cusum=Cusum(up=up, up_since=int(up_since), down=down, down_since=int(down_since), alarm_rows=int(alarm_rows), alarms=int(alarms)),
        exact_rows=int(values[15]),
        spread=Spread(weight=values[18], squares=values[19]),
        statistics_rows=int(values[16]),
        last_exact_at=values[17],
        versions=tuple(str(version) for version in versions),
    )


def _certainty(name: str) -> float:
    return GROUP_PRECISION if name.startswith("group ") else 1.0
