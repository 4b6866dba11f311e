"""What is believed before anything was observed, and the scale on which a residual is judged. Sizes in GB.

The need of a job is its deterministic part (what the memory model counts) plus a residual: context, libraries, communicators,
fragmentation. Of the residual a prior is known; what is left is learned as const + slope·A + slope·S, where A are the activations and
logits and S the model states. Every constant was chosen by simulation of clusters of 6000 jobs whose truth differs from the prior
(tests/bench/cluster_sim.py replays them), and holds on seeds that it was not chosen on.
"""

from __future__ import annotations

GIGABYTE = 1e9

STANDARD_DEVIATIONS = (0.7, 0.03, 0.015)
"""Of the constant in GB and of the slopes on A and S, before anything was observed: CUDA contexts and libraries were seen between 0.26
and 1.3 GB by driver, CUDA version and loaded kernels (pytorch issues 107667, 54564, 28394, 20532; vllm issues 11743, 14452)."""

GROUP_PRECISION = 2.0
"""How much more surely a group is believed to lie at its framework than a framework at the prior, as a ratio of precisions."""

CONSTANT_SCALE = 0.15
ACTIVATION_SCALE = 0.02
"""Scale of a residual in GB: 0.15 + 0.02·A. Its absolute level is absorbed by the pooled quantile."""

FIRST_QUANTILE = 3.5
"""Score that covers before MIN_SCORES were pooled: half a percent to one percent of the first 200 jobs miss it."""

MIN_SCORES = 60

LOWEST_QUANTILE = 1.5
LOWEST_EAGER_QUANTILE = 0.0
EAGER_ALPHA = 0.02
"""Above this α a bound may come down to its level: 2000 networks measured on one GPU scatter by a tenth of a scale
(tests/bench/measured.py). Below it a floor stands in for what few scores cannot show."""
HIGHEST_QUANTILE = 8.0

LOWEST_RESIDUAL = 0.3
"""GB: no process on a GPU does with less than a bare context (0.26 GB on an RTX 3090: InvokeAI issue 9413)."""
HIGHEST_RESIDUAL_RATIO = 0.35
HIGHEST_RESIDUAL = 3.0
"""The residual is never taken for more than the larger of this part of the card and these GB: more is another fault."""

ALARM_SCORES = 1.5
"""Scores that the bound is widened by for each level under alarm."""


def scale(activations: float) -> float:
    """Scale of a residual in GB."""
    return CONSTANT_SCALE + ACTIVATION_SCALE * activations
