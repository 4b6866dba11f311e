"""What is learned of a framework or of a group: its share of the residual, whether it has moved, which versions it ran."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from peakgate.calibration.drift import Cusum
from peakgate.calibration.prior import GROUP_PRECISION
from peakgate.calibration.regression import Regression, Vector

YOUNG_ROWS = 10
"""Exact rows below which a group is young."""
STALE_SECONDS = 30 * 86_400.0
"""A group without an exact row for so long has lost half of its certainty."""
STALE_KEPT = 0.5


@dataclass(slots=True)
class Node:
    """One level. `version` is that of its newest row; `last_exact_at` in seconds since the epoch."""

    regression: Regression
    cusum: Cusum = field(default_factory=Cusum)
    exact_rows: int = 0
    last_exact_at: float = 0.0
    version: str = ""

    def meet(self, version: str, finished_at: float) -> None:
        """Before a row is learned: another version, or a long silence, costs certainty."""
        if version and self.version and version != self.version:
            self.regression.forget()
            self.cusum.raise_alarm()
        if version:
            self.version = version
        if self.exact_rows and finished_at - self.last_exact_at > STALE_SECONDS:
            self.regression.forget(STALE_KEPT)

    def view(self) -> NodeView:
        """As it stands."""
        return NodeView(
            theta=self.regression.theta, alarmed=self.cusum.alarm_rows > 0, exact_rows=self.exact_rows, version=self.version
        )

    def state(self) -> list[float | str]:
        """Everything, as JSON can hold it."""
        return [*self.regression.state(), *self.cusum.state(), self.exact_rows, self.last_exact_at, self.version]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeView:
    """A node at one moment."""

    theta: Vector
    alarmed: bool
    exact_rows: int
    version: str


Views = Mapping[str, NodeView]


def new_node(name: str) -> Node:
    """A node that has seen nothing."""
    return Node(regression=Regression(certainty=_certainty(name)))


def node_from(name: str, state: list[float | str]) -> Node:
    """The node whose `state` that was. Raises ValueError or TypeError for anything else."""
    *numbers, version = state
    values = [float(number) for number in numbers]
    if len(values) != 17:
        raise ValueError(f"a node has 17 numbers, not {len(values)}")
    up, up_since, down, down_since, alarm_rows, alarms = values[9:15]
    return Node(
        regression=Regression(certainty=_certainty(name), m=values[:6], v=values[6:9]),
        cusum=Cusum(
            up=up, up_since=int(up_since), down=down, down_since=int(down_since), alarm_rows=int(alarm_rows), alarms=int(alarms)
        ),
        exact_rows=int(values[15]),
        last_exact_at=values[16],
        version=str(version),
    )


def _certainty(name: str) -> float:
    return GROUP_PRECISION if name.startswith("group ") else 1.0
