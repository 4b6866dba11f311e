"""The survival curve of the pooled standardised scores: weighted, aware of censoring, with a conformal atom.

An out-of-memory says only that the need was larger: its score is right-censored, and the curve is the product-limit estimator (Kaplan
and Meier, JASA 53, 1958) with weights. An atom of weight 1 at infinity stands for the next job, as in split conformal prediction (Vovk et
al., Algorithmic Learning in a Random World, 2005): with few scores no finite one covers. Pooling over groups after standardising follows
Dunn, Wasserman and Ramdas (arXiv 1809.07441).
"""

from __future__ import annotations

import math
import operator
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass

from peakgate.calibration import prior

Step = tuple[float, bool, float]
"""A score, whether it is only a lower bound, and its weight."""


@dataclass(frozen=True, slots=True)
class Curve:
    """P(score > z). `scores` rise, `alive[i]` is the survival from `scores[i]` on. Empty: not enough scores yet."""

    scores: tuple[float, ...] = ()
    alive: tuple[float, ...] = ()

    def survival(self, score: float) -> float:
        """Probability that the next score is larger. Before there are scores: logistic, with FIRST_QUANTILE at one percent."""
        if not self.scores:
            return _prior_survival(score)
        index = bisect_right(self.scores, score) - 1
        return self.alive[index] if index >= 0 else 1.0

    def quantile(self, alpha: float) -> float:
        """The smallest score that the next one passes with at most `alpha`, within its bounds; FIRST_QUANTILE before there are scores."""
        if not self.scores:
            return prior.FIRST_QUANTILE
        index = bisect_left(self.alive, -alpha, key=operator.neg)
        found = self.scores[index] if index < len(self.scores) else math.inf
        lowest = prior.LOWEST_EAGER_QUANTILE if alpha > prior.EAGER_ALPHA else prior.LOWEST_QUANTILE
        return min(max(found, lowest), prior.HIGHEST_QUANTILE)


def curve_of(steps: Iterable[Step], *, total: float) -> Curve:
    """The curve of steps in their order, whose weights sum to `total`. It falls at exact scores only, and starts at the first of all.

    An exact score counts before a lower bound at the same place: the censored job outlived it (Kaplan and Meier, §2).
    """
    at_risk, alive = total + 1.0, 1.0
    scores: list[float] = []
    survivals: list[float] = []
    for score, censored, weight in steps:
        if not censored:
            alive *= 1 - weight / at_risk
        if not censored or not scores:
            scores.append(score)
            survivals.append(alive)
        at_risk -= weight
    return Curve(scores=tuple(scores), alive=tuple(survivals))


def _prior_survival(score: float) -> float:
    exponent = score / (prior.FIRST_QUANTILE / math.log(99))
    return math.exp(-exponent) / (1 + math.exp(-exponent)) if exponent > 0 else 1 / (1 + math.exp(exponent))
