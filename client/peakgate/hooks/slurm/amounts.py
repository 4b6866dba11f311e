"""Counts of a request: exact, or a lower bound where the scheduler decides the rest. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Amount:
    """So many, or at least so many."""

    count: int
    is_at_least: bool = False

    def __str__(self) -> str:
        return f"at least {self.count}" if self.is_at_least else str(self.count)

    def times(self, other: Amount | int) -> Amount:
        """So many of something that is so much."""
        by = other if isinstance(other, Amount) else Amount(other)
        return Amount(self.count * by.count, self.is_at_least or by.is_at_least)

    @staticmethod
    def sum(amounts: Iterable[Amount]) -> Amount:
        """All of them together."""
        each = list(amounts)
        return Amount(sum(one.count for one in each), any(one.is_at_least for one in each))

    @staticmethod
    def largest(amounts: Iterable[Amount]) -> Amount | None:
        """What satisfies all of them, where each is a demand of its own; of equal ones the exact one."""
        return max(amounts, key=lambda one: (one.count, not one.is_at_least), default=None)


AT_LEAST_ONE = Amount(1, is_at_least=True)
