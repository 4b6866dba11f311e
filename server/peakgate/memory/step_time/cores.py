"""Seconds of the attention core: its FLOP, and the score matrices that an unfused core moves.

The core's two products have 4·q FLOP a token and key, so 12·L·h·s a token with the backward pass (Narayanan et al. 2021, arXiv 2104.04473,
appendix; PaLM, arXiv 2204.02311, appendix B: neither halves them for a causal mask). A fused core runs five products in its backward pass
instead of four, and skips the blocks above the diagonal of a causal mask (FlashAttention-2, arXiv 2307.08691, section 3.1); of a window it
reads no more than that. It never writes the s × s scores (FlashAttention, arXiv 2205.14135); an unfused one moves them through the card's
memory.
"""

from __future__ import annotations

from dataclasses import dataclass

from peakgate.memory.dtypes import ITEMSIZE
from peakgate.memory.plan import Plan
from peakgate.memory.step_time.arithmetic import Number, smaller
from peakgate.memory.step_time.card import Card
from peakgate.memory.step_time.products import NONE, Passes, Rows, format_rate

PRODUCTS, BACKWARD_UNFUSED, BACKWARD_FUSED = 2, 4, 5

SCORES = (8, 14)
"""Bytes a 16-bit score of an unfused core whose mask and softmax are one kernel (megatron/core/fusions/fused_softmax.py), in the forward
pass and the backward pass: product writes 2, softmax 2 + 2, product reads 2; backward its gradient 2, the saved scores 2, softmax 2 + 2 +
2, and 2 + 2 for the products of queries and keys. Libraries without that kernel move more."""

DROPPED = (5, 5)
"""More with dropout: reads 2, writes 2 and a mask of 1; backward the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Core:
    """Of all layers, a token and key."""

    forward: float
    backward: float


def is_fused(plan: Plan) -> bool:
    """Whether scores stay on the chip."""
    return plan.attention != "eager"


def is_causal(plan: Plan) -> bool:
    """Whether a token reads only those before it."""
    return plan.architecture.traits.get("objective") not in ("plain", "contrastive") and not plan.architecture.encoder


def core_passes(plan: Plan, card: Card, rows: Rows, keys: Number) -> Passes:
    """One micro-batch's cores of all layers; a rank has its own rows' queries against all keys."""
    if plan.architecture.network:
        return NONE
    queries = rows.divided
    near, far = _seconds(plan, card, local=True), _seconds(plan, card, local=False)
    pairs = queries * keys
    if not near.forward:
        return Passes(forward=pairs * far.forward, backward=pairs * far.backward)
    windowed = queries * smaller(keys * _seen(plan), 1.0 * plan.architecture.dims["window"]) * (1.0 / _seen(plan))
    return Passes(
        forward=pairs * far.forward + windowed * near.forward,
        backward=pairs * far.backward + windowed * near.backward,
    )


def _seen(plan: Plan) -> float:
    """Share of the keys that a fused causal core reads; with a mask of another kind it reads all (sdpa with a mask)."""
    skips = is_fused(plan) and is_causal(plan) and not (plan.attention == "sdpa" and plan.builds_mask)
    return 0.5 if skips else 1.0


def _seconds(plan: Plan, card: Card, *, local: bool) -> _Core:
    """Of the layers with a window, or of the others, for each pair of a token and a key of its sequence."""
    arch, fused = plan.architecture, is_fused(plan)
    layers = arch.dims["L"] * (_windowed_share(plan) if local else 1 - _windowed_share(plan))
    width = (arch.dims["latent_q"] + arch.dims["latent_v"]) / 2 if arch.dims.get("latent_q") else arch.dims["q"]
    product = 2.0 * width * layers * _seen(plan) / (card.flops * min(1.0, format_rate(plan)))
    moved = [0.0 if fused else (a + b * (plan.dropout_attention > 0)) for a, b in zip(SCORES, DROPPED, strict=True)]
    per_byte = arch.dims["a"] * layers * ITEMSIZE[plan.formats.compute] / ITEMSIZE["bfloat16"] / card.memory_bandwidth
    backward = BACKWARD_FUSED if fused else BACKWARD_UNFUSED
    return _Core(forward=PRODUCTS * product + moved[0] * per_byte, backward=backward * product + moved[1] * per_byte)


def _windowed_share(plan: Plan) -> float:
    """Layers that read a window only; a core with a mask of its own computes the rest and throws it away."""
    arch = plan.architecture
    if not arch.dims.get("window") or plan.attention != "flash":
        return 0.0
    return arch.pattern.count("local") / len(arch.pattern) if "local" in arch.pattern else 1.0
