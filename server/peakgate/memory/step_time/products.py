"""Seconds of matrix products: as many FLOP as they have, or as many bytes as they move, whichever takes longer.

A (rows, k) by (k, n) product has 2·rows·k·n FLOP and moves rows·k + k·n + rows·n elements; below the card's FLOP per byte the bytes decide
(Williams et al. 2009, the roofline model; NVIDIA, Matrix Multiplication Background User's Guide, section 2). So a smaller micro-batch costs
nothing until its products get too few rows, and a larger tensor parallel degree makes them narrower. The two products of the backward pass
move and multiply the same three matrices.
"""

from __future__ import annotations

from dataclasses import dataclass

from peakgate.memory.dtypes import ITEMSIZE
from peakgate.memory.plan import Plan
from peakgate.memory.step_time.arithmetic import Number, larger, sum_of
from peakgate.memory.step_time.card import Card
from peakgate.memory.step_time.sizes import Sizes
from peakgate.memory.step_time.work import Product, Work

RATES = {"float32": 0.5, "float8": 2.0}
"""Of 16-bit products; TF32 for float32 (data sheets of the A100 and H100), without which it is slower yet."""

FUSED_CHUNKS = "fused"
LOSS_CHUNKS = {"chunked": 8}
"""torchtune modules/loss/ce_chunked_output_loss.py: num_output_chunks = 8."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Passes:
    """Seconds of a forward pass of all layers, and of its backward pass."""

    forward: Number = 0.0
    backward: Number = 0.0

    def plus(self, other: Passes) -> Passes:
        """Both; nothing is added to one that is not there (`NONE`)."""
        if self is NONE or other is NONE:
            return other if self is NONE else self
        return Passes(forward=self.forward + other.forward, backward=self.backward + other.backward)


NONE = Passes()
"""Of a part that the model does not have."""


def format_rate(plan: Plan) -> float:
    """The rate of the plan's products as a multiple of 16-bit ones."""
    name = "float8" if plan.fp8 or plan.float8_gather else plan.formats.compute
    return RATES.get(name, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Tokens of a rank's micro-batch, whole and over the tensor parallel ranks."""

    whole: Number
    divided: Number


def product_passes(plan: Plan, work: Work, sizes: Sizes, card: Card, rows: Rows, part: str) -> Passes:
    """One micro-batch's products of one part, in all layers. Gradients of inputs are needed where anything in the layers is trained."""
    reached = float(any(p.trained for p, _ in work.products if p.part != "head"))
    timed = [(p.trained, _seconds(plan, sizes, card, rows, p, count)) for p, count in work.products if p.part == part]
    if not timed:
        return NONE
    forward, trained = sum_of([seconds for _, seconds in timed]), [seconds for is_trained, seconds in timed if is_trained]
    if len(trained) == len(timed):
        return Passes(forward=forward, backward=forward * (reached + 1.0))
    return Passes(forward=forward, backward=sum_of([forward * reached, *trained]))


def _seconds(plan: Plan, sizes: Sizes, card: Card, rows: Rows, product: Product, count: int) -> Number:
    """Of a forward pass of `count` equal products."""
    itemsize = ITEMSIZE[plan.formats.compute]
    per_byte = count * itemsize / card.memory_bandwidth
    read = product.wide * product.split * _copies(plan, product) * per_byte
    fullest = _fullest(plan, sizes) if product.part == "experts" else 1.0
    weights = read / (sizes.tensor * sizes.expert) if product.part == "experts" else read / sizes.tensor
    flops = 2.0 * product.wide * product.split * product.rows * count / (card.flops * format_rate(plan))
    moved = rows.whole * (product.wide * product.rows * per_byte * fullest) + rows.divided * (
        product.split * product.rows * per_byte * fullest
    )
    return larger(rows.divided * (flops * fullest), moved + weights)


def _copies(plan: Plan, product: Product) -> float:
    """How many weights are read: all experts; the head once a chunk. Liger's fused loss has h / V of the rows in a chunk
    (ops/fused_linear_cross_entropy.py)."""
    if product.part != "head":
        return product.copies
    dims = plan.architecture.dims
    return max(1.0, dims["V"] / dims["h"]) if plan.loss == FUSED_CHUNKS else LOSS_CHUNKS.get(plan.loss, 1)


def _fullest(plan: Plan, sizes: Sizes) -> Number:
    """Rows of the fullest rank's experts over those of balanced routing, once experts are divided."""
    more = plan.degrees.imbalance_permille / 1000 - 1
    return 1.0 + more * (sizes.expert > 1) if more else 1.0
