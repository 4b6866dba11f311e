"""The calibrator: the one writer that takes observations in, keeps the newest, and hands out snapshots."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, fields

from peakgate.calibration.fit import fit
from peakgate.calibration.gate import DUPLICATE, judge
from peakgate.calibration.observation import Observation, Outcome
from peakgate.calibration.snapshot import Snapshot

STATE_FORMAT = 1
"""Of the state that is stored; another one cannot be read."""

GROUP_WINDOW = 64
"""Newest observations that are kept of a group: a level that drifts has moved over after half of them."""

POOL_WINDOW = 2000
"""Newest observations that are kept in all, which bounds state and work: 2000 pooled scores estimate a 99 % quantile."""


class Calibrator:
    """Learns from observations one at a time.

    `epoch` names what the predictions were made with; figures of two memory models must not be mixed. The version of a
    snapshot is epoch.count, where the count rises with every observation that changed the state.
    """

    def __init__(self, *, epoch: str = "1") -> None:
        self.epoch = epoch
        self._count = 0
        self._rows: dict[str, Observation] = {}
        self._learned_by_group: Counter[str] = Counter()
        self._snapshot: Snapshot | None = None

    @property
    def version(self) -> str:
        """The version of the current snapshot."""
        return f"{self.epoch}.{self._count}"

    def learn(self, observation: Observation) -> Outcome:
        """Takes an observation in, or keeps it out and says why.

        Peaks only grow while they are gathered, so a second row of a prediction replaces the first when it says more,
        and otherwise is a DUPLICATE that changes nothing.
        """
        outcome = judge(observation)
        if not outcome.learned:
            return outcome
        known = self._rows.get(observation.prediction)
        if known is not None and _strength(observation) <= _strength(known):
            return Outcome(learned=False, reason=DUPLICATE, message=f"{observation.prediction} has been learned from already")
        self._rows[observation.prediction] = observation
        self._learned_by_group[observation.group] += known is None
        self._forget_oldest(observation.group)
        self._count += 1
        self._snapshot = None
        return outcome

    def snapshot(self) -> Snapshot:
        """The frozen state of this moment; it depends on what was learned, not on the order of delivery."""
        if self._snapshot is None:
            rows = sorted(self._rows.values(), key=_age)
            self._snapshot = fit(rows, learned_by_group=self._learned_by_group, version=self.version)
        return self._snapshot

    def state(self) -> dict[str, object]:
        """Everything, as JSON can hold it: `from_state` gives an equal calibrator back, to the last bit."""
        return {
            "format": STATE_FORMAT,
            "epoch": self.epoch,
            "count": self._count,
            "learned_by_group": dict(sorted(self._learned_by_group.items())),
            "columns": [each.name for each in fields(Observation)],
            "rows": [list(asdict(row).values()) for row in sorted(self._rows.values(), key=_age)],
        }

    @classmethod
    def from_state(cls, state: Mapping[str, object]) -> Calibrator:
        """The calibrator that `state` was taken from.

        Raises ValueError for a state that this version cannot read.
        """
        try:
            return cls._from_state(state)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"the calibration state cannot be read: {error!r}; replay the observations") from error

    @classmethod
    def _from_state(cls, state: Mapping[str, object]) -> Calibrator:
        if state["format"] != STATE_FORMAT:
            raise ValueError(f"its format is {state['format']}, not {STATE_FORMAT}")
        epoch, count, columns, rows = state["epoch"], state["count"], state["columns"], state["rows"]
        learned = state["learned_by_group"]
        if not (isinstance(epoch, str) and isinstance(count, int) and isinstance(columns, list) and isinstance(rows, list)):
            raise TypeError("epoch, count, columns or rows has a wrong type")
        if not isinstance(learned, dict):
            raise TypeError("learned_by_group has a wrong type")
        calibrator = cls(epoch=epoch)
        calibrator._count = count
        calibrator._learned_by_group.update(learned)
        for row in rows:
            observation = Observation(**dict(zip(columns, row, strict=True)))
            if not judge(observation).learned:
                raise ValueError(f"it holds a row that was never learned: {observation}")
            calibrator._rows[observation.prediction] = observation
        return calibrator

    def _forget_oldest(self, group: str) -> None:
        of_group = [row for row in self._rows.values() if row.group == group]
        if len(of_group) > GROUP_WINDOW:
            del self._rows[min(of_group, key=_age).prediction]
        if len(self._rows) > POOL_WINDOW:
            del self._rows[min(self._rows.values(), key=_age).prediction]


def _age(observation: Observation) -> tuple[float, str]:
    return observation.finished_at, observation.prediction


def _strength(observation: Observation) -> tuple[float, bool, float, str]:
    """Larger says more: a larger need than a smaller one, an exact row than a lower bound at the same place."""
    return observation.need_bytes, observation.upper_bytes is not None, observation.finished_at, observation.group
