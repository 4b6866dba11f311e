"""What is learned of a framework or of a group: its share of the residual, whether it has moved, which versions it ran."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from peakgate.calibration.drift import RENEWED, Cusum
from peakgate.calibration.prior import GROUP_PRECISION
from peakgate.calibration.regression import Regression, Vector
from peakgate.calibration.spread import Spread
from peakgate.calibration.versions import BUCKET, NAMES

YOUNG_ROWS = 10
"""Exact rows below which a group is young."""
STALE_SECONDS = 30 * 86_400.0
"""A group without an exact row for so long has lost half of its certainty."""
STALE_KEPT = 0.5
RENEWAL_ROWS = 30
"""Rows of one user between two versions of theirs that cost certainty, as many as an alarm lasts. Whoever moves to another version every
few jobs would else keep an alarm open for everybody."""
NUMBERS = 21
"""Of a node's state: nine of the regression, six of the sums, three counts, two of the spread, the rows since a renewal."""


@dataclass(slots=True)
class Node:
    """One level. `versions` are numbers of those that it met, the one that ran last at the end; `last_exact_at` in seconds since the epoch.

    `renewed_by` is whose job brought the version that last cost certainty, `renewed_rows` how many of theirs came since.
    """

    regression: Regression
    cusum: Cusum = field(default_factory=Cusum)
    spread: Spread = field(default_factory=Spread)
    exact_rows: int = 0
    statistics_rows: int = 0
    last_exact_at: float = 0.0
    versions: tuple[int, ...] = ()
    renewed_by: str = ""
    renewed_rows: int = 0

    @classmethod
    def new(cls, name: str) -> Node:
        """A node that has seen nothing."""
        return cls(regression=Regression(certainty=_certainty(name)))

    def meet(self, version: int, finished_at: float, *, user: str = "") -> None:
        """Before a row is learned: a known version that it has not met, or a long silence, costs certainty."""
        self.renewed_rows += bool(user) and user == self.renewed_by
        if version == BUCKET or not is_new(version, self.versions):
            self._remember(version)
        elif self._may_renew(user):
            self._remember(version)
            self.renewed_by, self.renewed_rows = user, 0
            self.regression.forget()
            self.cusum.raise_alarm(RENEWED)
        if self.exact_rows and finished_at - self.last_exact_at > STALE_SECONDS:
            self.regression.forget(STALE_KEPT)

    def _may_renew(self, user: str) -> bool:
        """Whether a new version of this user is news of the level. What is not stays new, so that only their own bounds are wider."""
        return not user or user != self.renewed_by or self.renewed_rows >= RENEWAL_ROWS

    def _remember(self, version: int) -> None:
        if version != BUCKET and self.versions[-1:] != (version,):
            self.versions = (*(each for each in self.versions if each != version), version)[-NAMES:]

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
        numbers = [*self.regression.state(), *self.cusum.state(), *counts, *self.spread.state(), self.renewed_rows]
        return [*numbers, self.renewed_by, list(self.versions)]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeView:
    """A node at one moment."""

    theta: Vector
    alarmed: bool
    exact_rows: int
    last_exact_at: float = 0.0
    versions: tuple[int, ...] = ()
    spread: float = 1.0
    alarms: int = 0
    """Since it was first seen."""


Views = Mapping[str, NodeView]


def is_new(version: int, versions: Collection[int]) -> bool:
    """Whether a version is none of those that a level met. One that met none has nothing that it could differ from."""
    return bool(versions) and version not in versions


def node_from(name: str, state: list[object]) -> Node:
    """The node whose `state` that was. Raises ValueError or TypeError for anything else."""
    *numbers, renewed_by, versions = state
    values = [float(str(number)) for number in numbers]
    if len(values) != NUMBERS or not isinstance(renewed_by, str) or not isinstance(versions, list):
        raise ValueError(f"a node has {NUMBERS} numbers, a user and a list of versions, not {state}")
    up, up_since, down, down_since, alarm_rows, alarms = values[9:15]
    return Node(
        regression=Regression(certainty=_certainty(name), m=values[:6], v=values[6:9]),
        cusum=Cusum(up=up, up_since=int(up_since), down=down, down_since=int(down_since), alarm_rows=int(alarm_rows), alarms=int(alarms)),
        exact_rows=int(values[15]),
        spread=Spread(weight=values[18], squares=values[19]),
        statistics_rows=int(values[16]),
        last_exact_at=values[17],
        versions=tuple(int(version) for version in versions),
        renewed_by=renewed_by,
        renewed_rows=int(values[20]),
    )


def _certainty(name: str) -> float:
    return GROUP_PRECISION if name.startswith("group ") else 1.0
