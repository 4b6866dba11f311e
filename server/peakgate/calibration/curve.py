"""The survival curve of the pooled standardised scores: weighted, aware of censoring, with a conformal atom.

An out-of-memory says only that the need was larger: its score is right-censored, and the curve is the product-limit estimator (Kaplan
and Meier, JASA 53, 1958) with weights. An atom of weight 1 at infinity stands for the next job, as in split conformal prediction (Vovk et
al., Algorithmic Learning in a Random World, 2005): with few scores no finite one covers. Pooling over groups after standardising follows
Dunn, Wasserman and Ramdas (arXiv 1809.07441).
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field

from peakgate.calibration import prior


@dataclass(frozen=True, slots=True)
class Curve:
    """P(score > z). `scores` rise, `alive[i]` is the survival from `scores[i]` on. Empty: not enough scores yet."""

    scores: tuple[float, ...] = ()
    alive: tuple[float, ...] = ()
    _quantiles: dict[float, float] = field(default_factory=dict, compare=False, repr=False)

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
        if alpha not in self._quantiles:
            found = next((score for score, alive in zip(self.scores, self.alive, strict=True) if alive <= alpha), math.inf)
            lowest = prior.LOWEST_EAGER_QUANTILE if alpha > prior.EAGER_ALPHA else prior.LOWEST_QUANTILE
            self._quantiles[alpha] = min(max(found, lowest), prior.HIGHEST_QUANTILE)
        return self._quantiles[alpha]


def curve_of(rows: Iterable[tuple[float, bool, float]]) -> Curve:
    """The curve of (score, exact, weight); a score that is not exact is a lower bound.

    An exact score counts before a lower bound at the same place: the censored job outlived it (Kaplan and Meier, §2).
    """
    ordered = sorted(rows, key=lambda row: (row[0], not row[1]))
    at_risk, alive = math.fsum(weight for _, _, weight in ordered) + 1.0, 1.0
    scores, survivals = [], []
    for score, exact, weight in ordered:
        if exact:
            alive *= 1 - weight / at_risk
        at_risk -= weight
        scores.append(score)
        survivals.append(alive)
    return Curve(scores=tuple(scores), alive=tuple(survivals))


def _prior_survival(score: float) -> float:
    exponent = score / (prior.FIRST_QUANTILE / math.log(99))
    return math.exp(-exponent) / (1 + math.exp(-exponent)) if exponent > 0 else 1 / (1 + math.exp(exponent))
