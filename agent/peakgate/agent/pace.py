"""When something is due, and how often at most."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from statistics import median

JITTER_RATIO = 0.2
"""A fixed period that is locked to the training step misses a spike of 0.1 s in a step of 2 s for ever in 90 % of phases; a jitter of
±20 % in none (Monte Carlo over ten minutes)."""
BUDGET_RATIO = 0.01
"""Share of wall time that process lists may take: the driver's lock is held meanwhile."""
LONGEST_PERIOD_SECONDS = 60.0
"""Processes are looked for at least this often, whatever it costs."""
ROUNDS = 5
"""The cost is the median of so many rounds: a machine that did not let the agent run for a moment says nothing about the driver."""


def jittered(seconds: float, uniform: Callable[[float, float], float] = random.uniform) -> float:
    """A wait of about so long; what many nodes began at one moment they do not go on doing at one moment."""
    return seconds * uniform(1 - JITTER_RATIO, 1 + JITTER_RATIO)


class Pace:
    """A jittered period. Due at once in the beginning."""

    def __init__(self, *, period_seconds: float, uniform: Callable[[float, float], float] = random.uniform) -> None:
        self.period_seconds = period_seconds
        self.due_at = float("-inf")
        self._uniform = uniform

    def is_due(self, now: float) -> bool:
        """Whether its time has come."""
        return now >= self.due_at

    def begin_next(self, now: float) -> None:
        """The next time, from now."""
        self.due_at = now + jittered(self.period_seconds, self._uniform)

    def hurry(self) -> None:
        """Due at once."""
        self.due_at = float("-inf")


class BudgetedPace(Pace):
    """A period that grows while a round costs more than its share of the time, and comes back when it does not."""

    def __init__(self, *, period_seconds: float, uniform: Callable[[float, float], float] = random.uniform) -> None:
        super().__init__(period_seconds=period_seconds, uniform=uniform)
        self._wanted_seconds = period_seconds
        self._costs_seconds: deque[float] = deque(maxlen=ROUNDS)

    @property
    def share(self) -> float:
        """What a round costs at present, as a share of the period."""
        return self._cost_seconds() / self.period_seconds

    def spend(self, cost_seconds: float) -> None:
        """A round has cost this much, extra readings since the last one included."""
        self._costs_seconds.append(cost_seconds)
        self.period_seconds = max(self._wanted_seconds, min(self._cost_seconds() / BUDGET_RATIO, LONGEST_PERIOD_SECONDS))

    def _cost_seconds(self) -> float:
        return median(tuple(self._costs_seconds)) if self._costs_seconds else 0.0
