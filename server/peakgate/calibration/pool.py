"""The newest standardised scores of all groups, and their curve."""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections import Counter, OrderedDict, deque
from collections.abc import Collection
from dataclasses import astuple, dataclass
from itertools import islice

from peakgate.calibration.curve import Curve, curve_of
from peakgate.calibration.prior import MIN_SCORES
from peakgate.calibration.subject import levels_of

WINDOW = 2000
"""2000 pooled scores estimate a 99 % quantile, and bound state and work."""
USER_SHARE = 0.05
"""Of the pool's weight that one user may have."""
LEAST_USER_ROWS = 20.0
SAME_JOB_ROWS = 3
"""Newest rows of one job of one user that count."""


@dataclass(frozen=True, slots=True)
class Score:
    """One row: how far the need lay from its level, in scales. `row` numbers the rows that were taken in.

    `chance` is what the calibration gave the need to be passed when it came; `told` says that the allocator's statistics were there.
    """

    value: float
    exact: bool
    user: str
    config: str
    framework: str
    group: str
    row: int
    prediction: str
    chance: float = 1.0
    told: bool = False

    @property
    def rank(self) -> tuple[float, bool, int, str]:
        """Rows stand in this order; an exact score before a lower bound at the same place, which it was outlived by."""
        return self.value, not self.exact, self.row, self.user

    @property
    def is_of(self) -> tuple[str, str]:
        """Names of the nodes that it was taken under."""
        return levels_of(framework=self.framework, group=self.group)


class Pool:
    """Scores of the newest rows: by row, by rank, by job; and the predictions that they were of."""

    def __init__(self) -> None:
        self._scores: OrderedDict[int, Score] = OrderedDict()
        self._ranked: list[tuple[float, bool, int, str]] = []
        self._of_user: Counter[str] = Counter()
        self._of_job: dict[tuple[str, str], deque[int]] = {}
        self._predictions: set[str] = set()

    def __len__(self) -> int:
        return len(self._scores)

    def __contains__(self, prediction: str) -> bool:
        return prediction in self._predictions

    def add(self, score: Score) -> None:
        """Takes a score; beyond SAME_JOB_ROWS the oldest one of the same job gives way."""
        if len(self._scores) == WINDOW:
            self._drop(next(iter(self._scores)))
        self._scores[score.row] = score
        insort(self._ranked, score.rank)
        self._of_user[score.user] += 1
        self._predictions.add(score.prediction)
        if score.config:
            rows = self._of_job.setdefault((score.user, score.config), deque())
            rows.append(score.row)
            if len(rows) > SAME_JOB_ROWS:
                self._drop(rows[0])

    def purge(self, name: str, *, since: int) -> None:
        """Forgets the scores that were taken under a level, by its node's name, from that row on."""
        for row in [row for row, score in self._scores.items() if row >= since and name in score.is_of]:
            self._drop(row)

    def newest_exact(self, rows: int) -> list[Score]:
        """The newest exact scores, the newest first."""
        return list(islice((score for score in reversed(self._scores.values()) if score.exact), rows))

    def users(self) -> frozenset[str]:
        """Those whose scores are in it."""
        return frozenset(user for user, rows in self._of_user.items() if rows)

    def curve(self, *, without: Collection[str]) -> Curve:
        """The curve of all scores but those of some users; empty with too few."""
        if len(self._scores) < MIN_SCORES:
            return Curve()
        weights = self._weights(without)
        total = math.fsum(rows * weights.get(user, 1.0) for user, rows in self._of_user.items())
        return curve_of(((value, censored, weights.get(user, 1.0)) for value, censored, _, user in self._ranked), total=total)

    def _weights(self, without: Collection[str]) -> dict[str, float]:
        """Of users whose rows do not count in full: those left out, and those with more than their share."""
        cap = max(LEAST_USER_ROWS, USER_SHARE * len(self._scores))
        weights = {user: cap / rows for user, rows in self._of_user.items() if user and rows > cap}
        return weights | {user: 0.0 for user in without if user}

    def _drop(self, row: int) -> None:
        score = self._scores.pop(row)
        del self._ranked[bisect_left(self._ranked, score.rank)]
        self._of_user[score.user] -= 1
        self._predictions.discard(score.prediction)
        if score.config:
            rows = self._of_job[score.user, score.config]
            rows.remove(row)
            if not rows:
                del self._of_job[score.user, score.config]

    def state(self) -> list[list[object]]:
        """Everything, as JSON can hold it."""
        return [list(astuple(score)) for score in self._scores.values()]

    @classmethod
    def from_state(cls, state: list[list[object]]) -> Pool:
        """The pool whose `state` that was."""
        pool = cls()
        for value, exact, user, config, framework, group, row, prediction, chance, told in state:
            names = str(user), str(config), str(framework), str(group)
            pool.add(Score(_float(value), bool(exact), *names, int(_float(row)), str(prediction), _float(chance), bool(told)))
        return pool


def _float(value: object) -> float:
    if not isinstance(value, int | float):
        raise TypeError(f"{value!r} is not a number")
    return float(value)
