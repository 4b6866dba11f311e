"""The two levels of every job: its framework and its group, each adding its share of the residual."""

from __future__ import annotations

from collections.abc import Mapping

from peakgate.calibration.node import Node, NodeView, node_from
from peakgate.calibration.observation import Observation
from peakgate.calibration.regression import HUBER_SCORES
from peakgate.calibration.subject import Subject
from peakgate.calibration.versions import Versions

MIN_STATISTICS_ROWS = 20
"""Rows with the allocator's statistics from which on a group needs no others."""


class Levels:
    """Nodes by name, with a view of each that is renewed when it moves."""

    def __init__(self, versions: Versions | None = None) -> None:
        self._versions = versions or Versions()
        self._nodes: dict[str, Node] = {}
        self._views: dict[str, NodeView] = {}

    @property
    def alarms(self) -> int:
        """Drift alarms since the start, of all nodes."""
        return sum(node.cusum.alarms for node in self._nodes.values())

    @property
    def versions(self) -> Versions:
        """Those that all levels refer to by number."""
        return self._versions

    def moved(self) -> Mapping[str, str]:
        """What the newest alarm of each level was that raised one since this object was made, by its name."""
        return {name: node.cusum.moved for name, node in sorted(self._nodes.items()) if node.cusum.moved}

    def left_over(self, observation: Observation) -> float:
        """GB of the residual that neither the prior nor the levels explain."""
        subject = observation.subject
        explained = sum(node.regression.at(subject.features) for node in self._path(subject))
        return observation.residual - subject.prior_residual - explained

    def needs_no_weak_labels(self, subject: Subject) -> bool:
        """Whether the group has enough rows that tell what is allocated, so that those which do not are worth nothing."""
        group = self._nodes.get(subject.levels[1])
        return group is not None and group.statistics_rows >= MIN_STATISTICS_ROWS

    def learn(self, observation: Observation, left_over: float) -> float:
        """Moves the levels by an exact row, the framework first: each takes what the one above left over. Returns what they leave over."""
        subject = observation.subject
        score = left_over / subject.scale
        self._nodes[subject.levels[1]].spread.see(score)
        weight = min(1.0, HUBER_SCORES / max(abs(score), 1e-9)) / subject.scale**2
        for node in self._path(subject):
            left_over = node.regression.learn(subject.features, left_over, weight)
            node.exact_rows += 1
            node.statistics_rows += observation.has_statistics
            node.last_exact_at = observation.finished_at
        return left_over

    def meet(self, observation: Observation) -> None:
        """Before a row is learned: a new version, or a long silence, costs certainty."""
        subject = observation.subject
        version = self._versions.meet(subject.version, user=subject.user)
        for name in subject.levels:
            node = self._nodes.get(name) or Node.new(name)
            self._nodes[name] = node
            node.meet(version, observation.finished_at, user=subject.user)

    def spread(self, subject: Subject) -> float:
        """How much noisier the group is than the scale says."""
        group = self._nodes.get(subject.levels[1])
        return group.spread.ratio if group is not None else 1.0

    def watch(self, subject: Subject, score: float, *, row: int) -> list[tuple[str, int]]:
        """Names of the levels that the score of a row shows to have moved, which then forget, with the rows since which they were wrong."""
        moved = []
        for name, node in zip(subject.levels, self._path(subject), strict=True):
            wrong_since = node.cusum.see(score, row=row)
            if wrong_since is not None:
                node.regression.forget()
                moved.append((name, wrong_since))
        return moved

    def renew(self, subject: Subject) -> None:
        """Renews the views of the job's levels."""
        self._views |= {name: self._nodes[name].view() for name in subject.levels}

    def views(self) -> Mapping[str, NodeView]:
        """Every node at this moment."""
        return dict(self._views)

    def _path(self, subject: Subject) -> list[Node]:
        return [self._nodes[name] for name in subject.levels if name in self._nodes]

    def state(self) -> dict[str, object]:
        """Everything, as JSON can hold it."""
        return {name: node.state() for name, node in sorted(self._nodes.items())}

    @classmethod
    def from_state(cls, state: Mapping[str, object], versions: Versions | None = None) -> Levels:
        """The levels whose `state` that was, with the versions that they refer to."""
        levels = cls(versions)
        for name, values in state.items():
            if not isinstance(values, list):
                raise TypeError(f"node {name} has a wrong type")
            levels._nodes[name] = node_from(name, values)
            levels._views[name] = levels._nodes[name].view()
        return levels
