"""The survival curve of the standardised scores of all groups: the prior mixed with what was observed.

Out-of-memory rows are right-censored scores. The observed part is the product-limit estimator (Kaplan and Meier, JASA 53,
1958); beyond its last score, when that one is censored, it goes on in the shape of the prior (as Brown, Hollander and
Korwar, 1974, do with an exponential), so the curve always falls to 0 and every coverage has a finite bound.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass

from peakgate.calibration import prior

# A logistic score outside this range has a probability below 1e-70 of being passed.
_FARTHEST_SCORE = 300.0


@dataclass(frozen=True, slots=True)
class Curve:
    """P(score > z). `scores` rise; `alive[i]` is the observed survival from `scores[i]` on; `rows` counts exact scores."""

    scores: tuple[float, ...] = ()
    alive: tuple[float, ...] = ()
    rows: int = 0

    def survival(self, score: float) -> float:
        """Probability that the next standardised score is larger than this one; falls strictly with the score."""
        share = self.rows / (self.rows + prior.PRIOR_ROWS)
        return (1 - share) * prior.survival(score) + share * self._observed(score)

    def quantile(self, exceeded_by: float) -> float:
        """The smallest score (to 1e-9) whose survival is at most `exceeded_by`, which lies in (0, 1)."""
        low, high = -_FARTHEST_SCORE, _FARTHEST_SCORE
        while high - low > 1e-9:
            middle = (low + high) / 2
            if self.survival(middle) <= exceeded_by:
                high = middle
            else:
                low = middle
        return high

    def _observed(self, score: float) -> float:
        index = bisect_right(self.scores, score) - 1
        if index < 0:
            return 1.0
        if index < len(self.scores) - 1 or self.alive[index] == 0.0:
            return self.alive[index]
        return self.alive[index] * prior.survival(score) / prior.survival(self.scores[index])


def product_limit(scores: Iterable[tuple[float, bool]]) -> Curve:
    """The curve of (score, exact) pairs; a score that is not exact is a lower bound. Order does not matter.

    An exact score counts before a lower bound at the same place: the censored job outlived it (Kaplan and Meier, §2).
    """
    ordered = sorted(scores, key=lambda pair: (pair[0], not pair[1]))
    at_risk, alive, steps = len(ordered), 1.0, []
    for score, exact in ordered:
        alive *= (at_risk - 1) / at_risk if exact else 1.0
        at_risk -= 1
        steps.append((score, alive))
    return Curve(
        scores=tuple(score for score, _ in steps),
        alive=tuple(alive for _, alive in steps),
        rows=sum(exact for _, exact in ordered),
    )
