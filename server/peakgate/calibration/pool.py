"""The newest standardised scores of all groups, and their curve."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection
from dataclasses import dataclass

from peakgate.calibration.curve import Curve, curve_of
from peakgate.calibration.prior import MIN_SCORES

WINDOW = 2000
"""2000 pooled scores estimate a 99 % quantile, and bound state and work."""
USER_SHARE = 0.05
"""Of the pool's weight that one user may have."""
LEAST_USER_ROWS = 20.0
SAME_JOB_ROWS = 3
"""Newest rows of one job of one user that count."""


@dataclass(frozen=True, slots=True)
class Score:
    """One row: how far the need lay from its level, in scales. `row` numbers the rows that were learned."""

    value: float
    exact: bool
    user: str
    config: str
    framework: str
    group: str
    row: int


class Pool:
    """Scores of the newest rows."""

    def __init__(self) -> None:
        self._scores: deque[Score] = deque(maxlen=WINDOW)
        self._of_job: Counter[tuple[str, str]] = Counter()

    def add(self, score: Score) -> None:
        """Takes a score; beyond SAME_JOB_ROWS the oldest one of the same job gives way."""
        if len(self._scores) == WINDOW:
            self._drop(self._scores[0])
        self._scores.append(score)
        if score.config:
            job = score.user, score.config
            self._of_job[job] += 1
            if self._of_job[job] > SAME_JOB_ROWS:
                self._drop(next(each for each in self._scores if (each.user, each.config) == job))

    def purge(self, name: str, *, since: int) -> None:
        """Forgets the scores that were taken under a level, by its node's name, from that row on."""
        for score in [each for each in self._scores if each.row >= since and name in (f"framework {each.framework}", f"group {each.group}")]:
            self._drop(score)

    def users(self) -> frozenset[str]:
        """Those whose scores are in it."""
        return frozenset(score.user for score in self._scores)

    def curve(self, *, without: Collection[str]) -> Curve:
        """The curve of all scores but those of some users; empty with too few."""
        if len(self._scores) < MIN_SCORES:
            return Curve()
        rows_of = Counter(score.user for score in self._scores)
        cap = max(LEAST_USER_ROWS, USER_SHARE * len(self._scores))
        kept = (score for score in self._scores if not score.user or score.user not in without)
        return curve_of((score.value, score.exact, min(1.0, cap / rows_of[score.user]) if score.user else 1.0) for score in kept)

    def _drop(self, score: Score) -> None:
        self._scores.remove(score)
        if score.config:
            job = score.user, score.config
            self._of_job[job] -= 1
            if not self._of_job[job]:
                del self._of_job[job]

    def state(self) -> list[list[object]]:
        """Everything, as JSON can hold it."""
        return [[each.value, each.exact, each.user, each.config, each.framework, each.group, each.row] for each in self._scores]

    @classmethod
    def from_state(cls, state: list[list[object]]) -> Pool:
        """The pool whose `state` that was."""
        pool = cls()
        for value, exact, user, config, framework, group, row in state:
            pool.add(Score(float(str(value)), bool(exact), str(user), str(config), str(framework), str(group), int(str(row))))
        return pool
