"""When a report is worth a datagram: growth soon, steps alone now and then, a failed allocation at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

INTERVAL_SECONDS = 1.0
"""Between two datagrams about growth. Peaks stop growing after the first steps, so that this hardly ever waits."""

REFRESH_SECONDS = 30.0
"""A datagram for the steps alone: what a process that is killed leaves behind is no older."""

TELLING_STEPS = 2
"""The first steps are told like growth: a process that ended before its second one had not yet reached its peak (optimizer states
appear in the first)."""


class State(NamedTuple):
    """What a report would say, short: each number only grows."""

    growth: int
    longest_sequence: int
    ooms: int
    steps: int


class Telling:
    """Remembers what was told last, and when."""

    def __init__(self, *, interval_seconds: float, clock: Callable[[], float]) -> None:
        self._interval_seconds = interval_seconds
        self._clock = clock
        self._told = State(0, 0, 0, 0)
        self._told_at = -float("inf")

    def is_news(self, state: State) -> bool:
        """Whether it was not told yet."""
        return state != self._told

    def is_due(self, state: State) -> bool:
        """Whether it is to be told now; after a failed allocation nothing more may come."""
        if not self.is_news(state):
            return False
        is_growth = state[:-1] != self._told[:-1] or state.steps <= TELLING_STEPS
        wait_seconds = self._interval_seconds if is_growth else REFRESH_SECONDS
        return state.ooms > self._told.ooms or self._clock() - self._told_at >= wait_seconds

    def note(self, state: State) -> None:
        """It was told now."""
        self._told, self._told_at = state, self._clock()
