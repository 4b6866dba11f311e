"""How much noisier the scores of a group are than the scale says. Never less: a quiet group may have been lucky."""

from __future__ import annotations

import math

SHRINKAGE_ROWS = 20.0
"""Rows that the belief in the scale is worth."""
KEPT = 0.99
"""Weight that is left of older rows with each new one: some hundred rows are remembered."""
CLIP = 3.0
"""One wild score is no noise: it counts as this."""


class Spread:
    """The shrunken root mean square of a group's scores, at least 1."""

    __slots__ = ("squares", "weight")

    def __init__(self, *, weight: float = 0.0, squares: float = 0.0) -> None:
        self.weight = weight
        self.squares = squares

    @property
    def ratio(self) -> float:
        """What the scale is multiplied by."""
        return max(1.0, math.sqrt((SHRINKAGE_ROWS + self.squares) / (SHRINKAGE_ROWS + self.weight)))

    def see(self, score: float) -> None:
        """Takes the score of an exact row."""
        self.weight = self.weight * KEPT + 1
        self.squares = self.squares * KEPT + min(abs(score), CLIP) ** 2

    def state(self) -> list[float]:
        """Its two numbers, in the order of the arguments."""
        return [self.weight, self.squares]
