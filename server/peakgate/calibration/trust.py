"""When the calibration must not be trusted, and what holds then: the wider of its careful bound and a fixed margin.

A calibration that is wrong looks like one that is right until jobs die. So it is judged by what it cannot hide: how often needs passed
what it had promised, how much of what arrives has to be kept out, how long it has heard nothing.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from peakgate.calibration.pool import Score

ROWS = 200
"""Newest exact rows over which misses are counted."""
MOST_MISSES = 3.0
"""Times α. With α = 5 % a sound calibration has more than 30 misses in 200 rows in one window of forty million (binomial)."""
DAY_SECONDS = 86_400.0
MOST_KEPT_OUT = 0.05
"""Share of a day's rows."""
MIN_DAY_ROWS = 20
"""Below 1/MOST_KEPT_OUT rows a single one would pass the limit."""
MOST_CLAMPED = 0.10
"""Share of predictions whose residual met its limit; the service counts them."""
MOST_SILENT = 0.20
"""Share of nodes whose agent has been silent for an hour; the service counts them."""

SAFE_COVERAGE = 0.99
FIXED_MARGIN = 0.15
"""Of the card: the rule of thumb that a calibration replaces."""

MISSES_TOO_OFTEN = "MISSES_TOO_OFTEN"
"""Of the newest exact rows, more than three times the promised share passed their bound."""
TOO_MUCH_KEPT_OUT = "TOO_MUCH_KEPT_OUT"
"""More than a twentieth of a day's rows could not be learned from, those of a single user aside."""
GROUP_STALE = "GROUP_STALE"
"""The group has had no exact row for 30 days."""
CLAMPED_TOO_OFTEN = "CLAMPED_TOO_OFTEN"
"""More than a tenth of the predictions met the limit of their residual."""
AGENTS_SILENT = "AGENTS_SILENT"
"""More than a fifth of the nodes have not reported for an hour."""
DISTRUST = (MISSES_TOO_OFTEN, TOO_MUCH_KEPT_OUT, GROUP_STALE, CLAMPED_TOO_OFTEN, AGENTS_SILENT)
"""Every reason. Part of the interface: words are only added."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """The record at one moment. `chances` rise: what the calibration gave each of the newest exact needs to be passed."""

    chances: tuple[float, ...] = ()
    kept_out_share: float = 0.0
    label_quality: float = 0.0
    """Share of the newest exact rows that came with the allocator's statistics; without them cached blocks look like needs."""

    def miss_rate(self, alpha: float) -> float:
        """Share of the newest exact rows that passed what was promised to hold with 1 − α; NaN before there are enough."""
        return bisect_right(self.chances, alpha) / ROWS if len(self.chances) == ROWS else math.nan

    def reasons(self, alpha: float) -> tuple[str, ...]:
        """Why not to trust a bound at this α; empty when there is no reason."""
        misses = self.miss_rate(alpha) > MOST_MISSES * alpha
        kept_out = self.kept_out_share > MOST_KEPT_OUT
        return tuple(reason for reason, holds in ((MISSES_TOO_OFTEN, misses), (TOO_MUCH_KEPT_OUT, kept_out)) if holds)


def reasons_of_service(*, clamped_share: float = 0.0, silent_share: float = 0.0) -> tuple[str, ...]:
    """Reasons that only the service can count."""
    found = (CLAMPED_TOO_OFTEN, clamped_share > MOST_CLAMPED), (AGENTS_SILENT, silent_share > MOST_SILENT)
    return tuple(reason for reason, holds in found if holds)


class Record:
    """Counts the rows of a day, in the order of their ends."""

    def __init__(self) -> None:
        self._day, self._rows, self._yesterday = 0, 0, 0.0
        self._kept_out: Counter[str] = Counter()

    def count(self, finished_at: float, *, user: str, kept_out: bool) -> None:
        """A row of that time was learned or kept out."""
        day = math.floor(finished_at / DAY_SECONDS)
        if day != self._day:
            self._yesterday = self._share()
            self._day, self._rows = day, 0
            self._kept_out.clear()
        self._rows += 1
        if kept_out:
            self._kept_out[user] += 1

    def view(self, newest_exact: Sequence[Score]) -> Trust:
        """As it stands. Scores under a level that was found to have moved are gone from the pool, and from here: that is dealt with."""
        return Trust(
            chances=tuple(sorted(score.chance for score in newest_exact)),
            kept_out_share=self._share(),
            label_quality=sum(score.told for score in newest_exact) / max(1, len(newest_exact)),
        )

    def _share(self) -> float:
        """Of the newest day; that of the day before until there are enough rows.

        The user with most rows that were kept out does not count: they say more about one person than about the calibration, and nobody
        can turn it off alone.
        """
        if self._rows < MIN_DAY_ROWS:
            return self._yesterday
        named = [rows for user, rows in self._kept_out.items() if user]
        return (sum(self._kept_out.values()) - max(named, default=0)) / self._rows

    def state(self) -> list[object]:
        """Everything, as JSON can hold it."""
        return [self._day, self._rows, self._yesterday, dict(sorted(self._kept_out.items()))]

    @classmethod
    def from_state(cls, state: Sequence[object]) -> Record:
        """The record whose `state` that was."""
        record = cls()
        day, rows, yesterday, kept_out = state
        if not (isinstance(day, int) and isinstance(rows, int) and isinstance(yesterday, float) and isinstance(kept_out, dict)):
            raise TypeError("day, rows, yesterday or kept_out has a wrong type")
        record._day, record._rows, record._yesterday = day, rows, yesterday
        record._kept_out.update({str(user): int(count) for user, count in kept_out.items()})
        return record
