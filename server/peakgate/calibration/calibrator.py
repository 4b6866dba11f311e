"""The calibrator: the one writer that takes observations in, one after the other, and hands out snapshots."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from peakgate.calibration.curve import Curve
from peakgate.calibration.drift import CLIP
from peakgate.calibration.earlier import NAMED_VERSIONS, with_numbers
from peakgate.calibration.gate import LABEL_WEAK, USER_QUARANTINED, judge_size, judge_values, refused
from peakgate.calibration.levels import Levels
from peakgate.calibration.observation import Observation, Outcome
from peakgate.calibration.pool import Pool, Score
from peakgate.calibration.snapshot import Snapshot
from peakgate.calibration.subject import Subject
from peakgate.calibration.trust import ROWS, Record
from peakgate.calibration.users import Users
from peakgate.calibration.versions import Versions

STATE_FORMAT = 4
"""Of the state that is stored. One of format 3 is read too (earlier.py); any other is made again from what was observed."""

KEYS_FORMAT = 3
"""Of the keys of frameworks and groups, in the state and in what was observed: under others nothing that was learned is found."""

CURVE_EVERY_ROWS = 10
"""The curve is drawn anew after so many rows: it moves slowly, and drawing it is most of the work."""

OUT_OF_ORDER = "OUT_OF_ORDER"
"""The attempt ended before the newest one that was taken in; a replay of all rows takes it in."""
DUPLICATE = "DUPLICATE"
"""The attempt has been taken in already."""


class Calibrator:
    """Learns from observations in the order of their ends.

    `epoch` names what the predictions were made with; figures of two memory models must not be mixed. The version of a snapshot is
    epoch.count, where the count rises with every observation in its order, learned or kept out: both change what may be trusted.
    """

    def __init__(self, *, epoch: str = "1") -> None:
        self.epoch = epoch
        self._count = 0
        self._newest: tuple[float, str] = (-math.inf, "")
        self._levels = Levels()
        self._pool = Pool()
        self._users = Users()
        self._record = Record()
        self._curve = Curve()
        self._drawn_at = 0
        self._snapshot: Snapshot | None = None

    @property
    def version(self) -> str:
        """The version of the current snapshot."""
        return f"{self.epoch}.{self._count}"

    @property
    def newest(self) -> tuple[float, str]:
        """The order of the newest observation that was taken in; one that comes before it is refused."""
        return self._newest

    @property
    def alarms(self) -> int:
        """Drift alarms since the start, of all levels."""
        return self._levels.alarms

    @property
    def moved(self) -> Mapping[str, str]:
        """Levels that raised an alarm since this object was made or read, each with what the newest one was."""
        return self._levels.moved()

    def learn(self, observation: Observation) -> Outcome:
        """Takes an observation in, or keeps it out and says why."""
        if refusal := judge_values(observation) or self._judge_order(observation):
            return refusal
        self._newest = observation.order
        self._count += 1
        self._snapshot = None
        outcome = (None if observation.released else judge_size(observation)) or self._learn(observation)
        kept_out = not outcome.learned and outcome.reason != LABEL_WEAK
        self._record.count(observation.finished_at, user=observation.subject.user, kept_out=kept_out)
        return outcome

    def snapshot(self) -> Snapshot:
        """The frozen state of this moment."""
        if self._snapshot is None:
            self._snapshot = Snapshot(
                version=self.version,
                nodes=self._levels.views(),
                versions=self._levels.versions.numbers,
                curve=self._curve,
                leanings=self._users.leanings(),
                suspects=self._users.suspects(),
                trust=self._record.view(self._pool.newest_exact(ROWS)),
                newest_at=self._newest[0],
            )
        return self._snapshot

    def _judge_order(self, observation: Observation) -> Outcome | None:
        if observation.order == self._newest or observation.prediction in self._pool:
            return refused(DUPLICATE, f"{observation.prediction} has been taken in already")
        if observation.order < self._newest:
            return refused(OUT_OF_ORDER, f"{observation.prediction} ended before the newest attempt that was taken in")
        return None

    def _learn(self, observation: Observation) -> Outcome:
        subject = observation.subject
        if observation.exact and not observation.has_statistics and self._levels.needs_no_weak_labels(subject):
            return refused(LABEL_WEAK, f"group {subject.group} is known from rows that tell what is allocated; this one does not")
        left_over = self._levels.left_over(observation)
        if observation.exact:
            self._users.see(subject.user, subject.framework, left_over / subject.scale)
        if not observation.released and self._users.is_suspect(subject.user, subject.framework):
            message = f"the jobs of user {subject.user} lie far from what was predicted for them, and those of others do not"
            return refused(USER_QUARANTINED, message)
        self._levels.meet(observation)
        leaning = self._users.leaning(subject.user)
        left_over -= leaning * subject.scale
        score, spread = left_over / subject.scale, self._levels.spread(subject)
        if observation.exact:
            rest = self._levels.learn(observation, left_over)
            self._users.settle(subject.user, leaning + rest / subject.scale)
        self._pool_score(observation, score / spread)
        self._watch(subject, score if observation.exact else CLIP if observation.fills_the_card else None)
        return Outcome(learned=True)

    def _pool_score(self, observation: Observation, score: float) -> None:
        subject = observation.subject
        names = subject.user, observation.config, subject.framework, subject.group
        chance = self._curve.survival(score)
        self._pool.add(Score(score, observation.exact, *names, self._count, observation.prediction, chance, observation.has_statistics))

    def _watch(self, subject: Subject, score: float | None) -> None:
        """Looks for levels that have moved; what was scored under them since is dropped. None: the row says nothing of them."""
        moved = [] if score is None else self._levels.watch(subject, score, row=self._count)
        self._levels.renew(subject)
        for name, wrong_since in moved:
            self._pool.purge(name, since=wrong_since)
        if moved or self._count - self._drawn_at >= CURVE_EVERY_ROWS:
            self._drawn_at = self._count
            self._curve = self._pool.curve(without=self._users.kept_out_of_pool(self._pool.users()))

    def state(self) -> dict[str, object]:
        """Everything, as JSON can hold it: `from_state` gives an equal calibrator back, to the last bit."""
        return {
            "format": STATE_FORMAT,
            "keys": KEYS_FORMAT,
            "epoch": self.epoch,
            "count": self._count,
            "drawn_at": self._drawn_at,
            "newest": list(self._newest) if self._count else None,
            "versions": self._levels.versions.state(),
            "nodes": self._levels.state(),
            "pool": self._pool.state(),
            "users": self._users.state(),
            "record": self._record.state(),
            "curve": [list(self._curve.scores), list(self._curve.alive)],
        }

    @classmethod
    def from_state(cls, state: Mapping[str, object]) -> Calibrator:
        """The calibrator that `state` was taken from. Raises ValueError for a state that this version cannot read."""
        try:
            return cls._from_state(state)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            raise ValueError(f"the calibration state cannot be read: {error!r}; replay the observations") from error

    @classmethod
    def _from_state(cls, state: Mapping[str, object]) -> Calibrator:
        if state["format"] == NAMED_VERSIONS:
            state = with_numbers(state)
        elif state["format"] != STATE_FORMAT:
            raise ValueError(f"its format is {state['format']}, not {STATE_FORMAT}")
        epoch, count, drawn_at, versions, nodes, pool, users, record, curve = (state[name] for name in _PARTS)
        if not (
            isinstance(epoch, str)
            and isinstance(count, int)
            and isinstance(drawn_at, int)
            and isinstance(nodes, dict)
            and isinstance(pool, list)
            and isinstance(versions, list)
        ):
            raise TypeError("epoch, count, drawn_at, versions, nodes or pool has a wrong type")
        if not (isinstance(users, dict) and isinstance(record, list) and isinstance(curve, list)):
            raise TypeError("users, record or curve has a wrong type")
        calibrator = cls(epoch=epoch)
        calibrator._count, calibrator._drawn_at = count, drawn_at
        newest = state["newest"]
        if isinstance(newest, list):
            calibrator._newest = float(newest[0]), str(newest[1])
        calibrator._levels = Levels.from_state(nodes, Versions.from_state(versions))
        calibrator._pool = Pool.from_state(pool)
        calibrator._users = Users.from_state(users)
        calibrator._record = Record.from_state(record)
        calibrator._curve = Curve(scores=tuple(curve[0]), alive=tuple(curve[1]))
        return calibrator


_PARTS = ("epoch", "count", "drawn_at", "versions", "nodes", "pool", "users", "record", "curve")


def replay(observations: Iterable[Observation], *, epoch: str = "1") -> Calibrator:
    """The calibrator that learned these attempts in the order of their ends, each once: equal to one that was fed as they came."""
    calibrator = Calibrator(epoch=epoch)
    for observation in in_order(observations):
        calibrator.learn(observation)
    return calibrator


def in_order(observations: Iterable[Observation]) -> list[Observation]:
    """Those that can be used at all, in the order in which a calibrator takes them in.

    Of two rows of one end and prediction the smaller comes first, whichever was delivered first.
    """
    return sorted((each for each in observations if not judge_values(each)), key=_replayed_in)


def _replayed_in(observation: Observation) -> tuple[tuple[float, str], int, int]:
    return observation.order, observation.lower_bytes, observation.upper_bytes or 0
