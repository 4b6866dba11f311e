"""Exercise 1: parameters of a layer and of a model (Lesson 6, section 3, "Parameters")."""

from __future__ import annotations

from fractions import Fraction

from peakgate.memory.compose import whole_model
from peakgate.memory.exercises.lesson import lesson_job, plan_of
from peakgate.memory.job import Job
from peakgate.memory.pipeline import stages
from peakgate.memory.weighing import census


def params_per_layer(h: int, mlp_ratio: float = 4, n_kv_ratio: float = 1, style: str = "gpt") -> int:
    """Weights of one layer, counted by running it forward.

    `mlp_ratio`: width of the MLP over h; `n_kv_ratio`: key/value heads over query heads; `style`: gpt or llama.
    """
    plan = plan_of(_model(1, h, 1, mlp_ratio, n_kv_ratio, style))
    (stage,) = stages(plan.degrees, layers=1, micro_batches=1)
    (layer,) = census(plan, stage).layers.values()
    return sum(layer)


def model_params(
    L: int,
    h: int,
    V: int,
    mlp_ratio: float = 4,
    n_kv_ratio: float = 1,
    style: str = "gpt",
    *,
    tied: bool | None = None,
    positions: int = 0,
) -> int:
    """Weights of L such layers with embedding, last norm and output layer.

    `tied`: embedding and output layer are one (gpt: yes, llama: no); `positions`: rows of a learned position table.
    """
    total, _ = whole_model(plan_of(_model(L, h, V, mlp_ratio, n_kv_ratio, style, tied=tied, positions=positions)))
    return total


def _model(L: int, h: int, V: int, mlp_ratio: float, n_kv_ratio: float, style: str, *, tied: bool | None = None, positions: int = 0) -> Job:
    """A job with the fewest heads that have this ratio: their number itself changes no count."""
    ratio = Fraction(n_kv_ratio).limit_denominator(h)
    width = round(mlp_ratio * h)
    heads, kv_heads = ratio.denominator, ratio.numerator
    return lesson_job(s=8, b=1, h=h, a=heads, L=L, V=V, style=style, f=width, kv_heads=kv_heads, tied=tied, positions=positions)
