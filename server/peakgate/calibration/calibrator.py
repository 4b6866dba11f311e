"""The calibrator: the one writer that takes observations in, one after the other, and hands out snapshots."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from peakgate.calibration.curve import Curve
from peakgate.calibration.drift import CLIP
from peakgate.calibration.gate import judge
from peakgate.calibration.node import Node, new_node, node_from
from peakgate.calibration.observation import Observation, Outcome
from peakgate.calibration.pool import Pool, Score
from peakgate.calibration.regression import HUBER_SCORES
from peakgate.calibration.snapshot import Snapshot
from peakgate.calibration.subject import Subject
from peakgate.calibration.users import Users

STATE_FORMAT = 2
"""Of the state that is stored; another one cannot be read."""

CURVE_EVERY_ROWS = 10
"""The curve is drawn anew after so many rows: it moves slowly, and drawing it is most of the work."""

OUT_OF_ORDER = "OUT_OF_ORDER"
"""The attempt ended before the newest one that was learned; a replay of all rows takes it in."""
DUPLICATE = "DUPLICATE"
"""The attempt has been learned from already."""
USER_QUARANTINED = "USER_QUARANTINED"
"""The user's jobs lie far from what they declare, and those of others do not."""


class Calibrator:
    """Learns from observations in the order of their ends.

    `epoch` names what the predictions were made with; figures of two memory models must not be mixed. The version of a snapshot is
    epoch.count, where the count rises with every observation that changed the state.
    """

    def __init__(self, *, epoch: str = "1") -> None:
        self.epoch = epoch
        self._count = 0
        self._newest: tuple[float, str] = (float("-inf"), "")
        self._nodes: dict[str, Node] = {}
        self._pool = Pool()
        self._users = Users()
        self._curve = Curve()
        self._snapshot: Snapshot | None = None

    @property
    def version(self) -> str:
        """The version of the current snapshot."""
        return f"{self.epoch}.{self._count}"

    @property
    def alarms(self) -> int:
        """Drift alarms since the start, of all levels."""
        return sum(node.cusum.alarms for node in self._nodes.values())

    def learn(self, observation: Observation) -> Outcome:
        """Takes an observation in, or keeps it out and says why."""
        outcome = judge(observation)
        if not outcome.learned:
            return outcome
        if observation.order <= self._newest:
            repeated = observation.order == self._newest
            message = f"{observation.prediction} ended before the newest attempt that was learned"
            return Outcome(learned=False, reason=DUPLICATE if repeated else OUT_OF_ORDER, message=message)
        self._newest = observation.order
        self._count += 1
        self._snapshot = None
        return self._learn(observation)

    def snapshot(self) -> Snapshot:
        """The frozen state of this moment."""
        if self._snapshot is None:
            self._snapshot = Snapshot(
                version=self.version,
                nodes={name: node.view() for name, node in self._nodes.items()},
                curve=self._curve,
                suspects=self._suspects(),
            )
        return self._snapshot

    def _learn(self, observation: Observation) -> Outcome:
        subject = observation.subject
        nodes = [self._node(name) for name in subject.levels]
        for node in nodes:
            node.meet(subject.version, observation.finished_at)
        left_over = observation.residual - subject.prior_residual - sum(node.regression.at(subject.features) for node in nodes)
        score = left_over / subject.scale
        if observation.exact:
            self._users.see(subject.user, subject.framework, score)
        if self._users.is_suspect(subject.user, subject.framework):
            message = f"the jobs of user {subject.user} lie far from what was predicted for them, and those of others do not"
            return Outcome(learned=False, reason=USER_QUARANTINED, message=message)
        if observation.exact:
            self._regress(subject, nodes, left_over, score, observation.finished_at)
        self._pool.add(
            Score(score, observation.exact, subject.user, observation.config, subject.framework, subject.group, self._count)
        )
        moved = self._watch(observation, nodes, score)
        if moved or self._count % CURVE_EVERY_ROWS == 0:
            self._draw()
        return Outcome(learned=True)

    def _regress(self, subject: Subject, nodes: Iterable[Node], left_over: float, score: float, finished_at: float) -> None:
        weight = min(1.0, HUBER_SCORES / max(abs(score), 1e-9)) / subject.scale**2
        for node in nodes:
            left_over = node.regression.learn(subject.features, left_over, weight)
            node.exact_rows += 1
            node.last_exact_at = finished_at

    def _watch(self, observation: Observation, nodes: Iterable[Node], score: float) -> bool:
        """Whether a level was found to have moved: then it forgets, and the scores that were taken under it are dropped."""
        if not (observation.exact or observation.fills_the_card):
            return False
        moved = False
        for name, node in zip(observation.subject.levels, nodes, strict=True):
            wrong_since = node.cusum.see(score if observation.exact else CLIP, row=self._count)
            if wrong_since is not None:
                node.regression.forget()
                self._pool.purge(name, since=wrong_since)
                moved = True
        return moved

    def _draw(self) -> None:
        self._curve = self._pool.curve(without=self._users.kept_out_of_pool(self._pool.users()))

    def _suspects(self) -> dict[tuple[str, str], float]:
        frameworks = {name.removeprefix("framework ") for name in self._nodes if name.startswith("framework ")}
        penalties = self._users.penalties()
        return {
            (user, framework): score
            for user, score in penalties.items()
            for framework in frameworks
            if self._users.is_suspect(user, framework)
        }

    def _node(self, name: str) -> Node:
        if name not in self._nodes:
            self._nodes[name] = new_node(name)
        return self._nodes[name]

    def state(self) -> dict[str, object]:
        """Everything, as JSON can hold it: `from_state` gives an equal calibrator back, to the last bit."""
        return {
            "format": STATE_FORMAT,
            "epoch": self.epoch,
            "count": self._count,
            "newest": list(self._newest) if self._count else None,
            "nodes": {name: node.state() for name, node in sorted(self._nodes.items())},
            "pool": self._pool.state(),
            "users": self._users.state(),
            "curve": [list(self._curve.scores), list(self._curve.alive)],
        }

    @classmethod
    def from_state(cls, state: Mapping[str, object]) -> Calibrator:
        """The calibrator that `state` was taken from. Raises ValueError for a state that this version cannot read."""
        try:
            return cls._from_state(state)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise ValueError(f"the calibration state cannot be read: {error!r}; replay the observations") from error

    @classmethod
    def _from_state(cls, state: Mapping[str, object]) -> Calibrator:
        if state["format"] != STATE_FORMAT:
            raise ValueError(f"its format is {state['format']}, not {STATE_FORMAT}")
        epoch, count, nodes, pool, users, curve = (state[name] for name in ("epoch", "count", "nodes", "pool", "users", "curve"))
        if not (isinstance(epoch, str) and isinstance(count, int) and isinstance(nodes, dict) and isinstance(pool, list)):
            raise TypeError("epoch, count, nodes or pool has a wrong type")
        if not (isinstance(users, dict) and isinstance(curve, list)):
            raise TypeError("users or curve has a wrong type")
        calibrator = cls(epoch=epoch)
        calibrator._count = count
        newest = state["newest"]
        if isinstance(newest, list):
            calibrator._newest = float(newest[0]), str(newest[1])
        calibrator._nodes = {name: node_from(name, values) for name, values in nodes.items()}
        calibrator._pool = Pool.from_state(pool)
        calibrator._users = Users.from_state(users)
        calibrator._curve = Curve(scores=tuple(curve[0]), alive=tuple(curve[1]))
        return calibrator


def replay(observations: Iterable[Observation], *, epoch: str = "1") -> Calibrator:
    """The calibrator that learned these attempts in the order of their ends, each once: equal to one that was fed as they came."""
    calibrator = Calibrator(epoch=epoch)
    for observation in sorted({each.prediction: each for each in observations}.values(), key=lambda each: each.order):
        calibrator.learn(observation)
    return calibrator
