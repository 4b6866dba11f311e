"""What is believed before anything was observed: how far a need may lie from the predicted requirement.

Scores are in units of the spread: score = (need − required) / spread(required). The prior of a score is a logistic
distribution with mean 0 and standard deviation 1: close to a normal one at 95 %, heavier beyond, and closed in both
directions.
"""

from __future__ import annotations

import math

GIGABYTE = 1_000_000_000

CONTEXT_SPREAD_BYTES = 0.7 * GIGABYTE
"""Standard deviation of what lies outside the allocator: CUDA context and libraries were seen between 0.26 and 1.3 GB by
driver, CUDA version and loaded kernels (pytorch issues 107667, 54564, 28394, 20532; vllm issues 11743, 14452)."""

SPREAD_RATIO = 0.02
"""Standard deviation of the rest in parts of the requirement: what cluster simulations of 6000 jobs with allocator noise of
0.8 to 3 % of the activations called for (0.15 GB + 2 % of the activations)."""

SCATTER = 0.4
"""Part of the spread that stays between jobs of one group when its level is known: 0.15 GB + 2 % of the activations, which
are half of a typical requirement, against 0.7 GB + 2 % of it, over requirements of 10 to 80 GB."""

GROUP_ROWS = 2.0
"""Observations of a group that weigh as much as its parent. A ridge with the spreads above would ask for less than one; two
rows keep a single odd job from owning its group."""

PRIOR_ROWS = 60.0
"""Observations that weigh as much as the prior in the survival curve: the pooled scores that simulations needed before
their quantile was worth more than a fixed one."""

_LOGISTIC_SCALE = math.sqrt(3) / math.pi
"""Scale of a logistic distribution with standard deviation 1."""


def spread_bytes(required_bytes: float) -> float:
    """Standard deviation in bytes of need − required, before anything was observed."""
    return CONTEXT_SPREAD_BYTES + SPREAD_RATIO * required_bytes


def width(observations: int) -> float:
    """Standard deviation, in spreads, of the next score of a group with so many exact observations: 1 with none.

    The variance is that between jobs plus that of the group's level, which shrinks as a hierarchical mean does: n rows
    against GROUP_ROWS of the parent (Gelman and Hill, Data Analysis Using Regression and Multilevel Models, eq. 12.1).
    """
    between_jobs = SCATTER**2
    return math.sqrt(between_jobs + (1 - between_jobs) * GROUP_ROWS / (GROUP_ROWS + observations))


def survival(score: float) -> float:
    """Prior probability that a standardised score is larger; strictly positive for every score below about 400."""
    exponent = score / _LOGISTIC_SCALE
    return math.exp(-exponent) / (1 + math.exp(-exponent)) if exponent > 0 else 1 / (1 + math.exp(exponent))
