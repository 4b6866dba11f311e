"""Has a level moved? Two cumulative sums of its scores, one a direction (Page, Biometrika 41, 1954)."""

from __future__ import annotations

from collections.abc import Sequence

SLACK = 1.0
"""Scores within this distance of the level say nothing against it."""
LIMIT = 8.0
"""Sum at which a level counts as moved: no alarm in 6000 jobs of a simulated cluster without drift."""
CLIP = 3.0
"""One row counts for at most this much, so that no single one raises an alarm."""
UP, DOWN, RENEWED = "needs rose", "needs fell", "a version that it had not met"
"""What an alarm says of a level."""
ALARM_ROWS = 30
"""Rows that an alarm lasts: bounds are wider until the level has settled. With 15 rows 4.0 % of the jobs 40 to 120 after a silent upgrade
missed a bound at 95 %, with 30 rows 2.3 %, for a tenth of a point more false rejections (simulated clusters 301 to 306)."""


class Cusum:
    """Both sums, and the rows at which each last left zero: what was scored from then on was scored under a wrong level.

    `moved` says what the newest alarm was since this object was made, for a person: it is no part of the state.
    """

    __slots__ = ("alarm_rows", "alarms", "down", "down_since", "moved", "up", "up_since")

    def __init__(
        self, *, up: float = 0.0, up_since: int = 0, down: float = 0.0, down_since: int = 0, alarm_rows: int = 0, alarms: int = 0
    ) -> None:
        self.up = up
        self.up_since = up_since
        self.down = down
        self.down_since = down_since
        self.alarm_rows = alarm_rows
        self.alarms = alarms
        self.moved = ""

    def see(self, score: float, *, row: int) -> int | None:
        """Takes the score of a row. When that raises an alarm: the row from which on the level was wrong."""
        self.alarm_rows = max(0, self.alarm_rows - 1)
        clipped = min(max(score, -CLIP), CLIP)
        self.up, self.up_since = _added(self.up, self.up_since, clipped, row)
        self.down, self.down_since = _added(self.down, self.down_since, -clipped, row)
        if self.up > LIMIT:
            self.raise_alarm(UP)
            return self.up_since
        if self.down > LIMIT:  # the level lies too high, so that bounds are safe: nothing is widened
            self.down = 0.0
            self.alarms += 1
            self.moved = DOWN
            return self.down_since
        return None

    def raise_alarm(self, moved: str) -> None:
        """Bounds are wider for a while."""
        self.moved = moved
        self.up = 0.0
        self.alarm_rows = ALARM_ROWS
        self.alarms += 1

    def state(self) -> Sequence[float]:
        """Its six numbers, in the order of the arguments."""
        return [self.up, self.up_since, self.down, self.down_since, self.alarm_rows, self.alarms]


def _added(total: float, since: int, score: float, row: int) -> tuple[float, int]:
    """The sum with this score, and the row at which it last left zero."""
    grown = max(0.0, total + score - SLACK)
    return grown, row if total == 0.0 else since
