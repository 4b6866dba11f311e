"""One micro-batch on one rank: the seconds of all layers, kind by kind, before a pipeline divides them."""

from __future__ import annotations

from dataclasses import dataclass

from peakgate.memory.plan import Plan
from peakgate.memory.step_time.arithmetic import Number, sum_of, whole_parts
from peakgate.memory.step_time.card import Card
from peakgate.memory.step_time.cores import core_passes
from peakgate.memory.step_time.elementwise import layer_passes, loss_seconds
from peakgate.memory.step_time.products import Passes, Rows, product_passes
from peakgate.memory.step_time.recompute import runs_again, wrapped_share
from peakgate.memory.step_time.sizes import Sizes
from peakgate.memory.step_time.work import Work


@dataclass(frozen=True, slots=True, kw_only=True)
class MicroBatch:
    """Seconds of a rank's share of the layers, which its stage's share has been taken of."""

    products: Number
    head: Number
    cores: Number
    elementwise: Number
    loss: Number
    recompute: Number
    forward: Number
    """Of the layers' forward pass, which gathers of weights hide behind …"""
    backward: Number
    """… and of their backward pass with what runs again, which gradients hide behind."""
    rows: Number
    """Tokens of the rank …"""
    divided: Number
    """… and over its tensor parallel ranks."""
    stage: Number
    """Share of the layers that are on the fullest stage."""
    wrapped: Number
    """Share of those that are checkpointed."""


def rows_of(plan: Plan, sizes: Sizes) -> Number:
    """Tokens of one rank's micro-batch; of two stacks the mean over their layers."""
    return sizes.micro_batch * keys_of(plan, sizes) / sizes.context


def keys_of(plan: Plan, sizes: Sizes) -> Number:
    """Tokens of a sequence; of two stacks the mean over their layers."""
    arch = plan.architecture
    if not arch.encoder:
        return sizes.sequence
    encoder = arch.dims["encoder_layers"] / arch.dims["L"]
    return sizes.sequence * encoder + sizes.target * (1 - encoder)


def micro_batch(plan: Plan, work: Work, sizes: Sizes, card: Card) -> MicroBatch:
    """The seconds of one micro-batch."""
    whole = rows_of(plan, sizes)
    rows = Rows(whole=whole, divided=whole / sizes.tensor)
    attention, mlp, experts, head = (
        product_passes(plan, work, sizes, card, rows, part) for part in ("attention", "mlp", "experts", "head")
    )
    cores = core_passes(plan, card, rows, keys_of(plan, sizes))
    moved = layer_passes(plan, work, card, rows)
    moved = _with_dequantised(work, sizes, card, moved)
    again, wrapped = runs_again(plan), wrapped_share(plan, work, sizes)
    stage = whole_parts(1.0 * work.layers, sizes.pipeline) / work.layers
    multiplied = attention.plus(mlp).plus(experts)
    shares = ((attention, again.attention), (mlp.plus(experts), again.mlp), (cores, again.core), (moved, again.elementwise))
    rerun = [part.forward * share for part, share in shares if share]
    recompute = sum_of(rerun) * (wrapped * stage) if rerun else 0.0
    one = multiplied.plus(cores).plus(moved)
    return MicroBatch(
        products=(multiplied.forward + multiplied.backward) * stage,
        head=head.forward + head.backward,
        cores=(cores.forward + cores.backward) * stage,
        elementwise=(moved.forward + moved.backward) * stage,
        loss=loss_seconds(plan, work, card, rows),
        recompute=recompute,
        forward=one.forward * stage,
        backward=one.backward * stage + recompute,
        rows=rows.whole,
        divided=rows.divided,
        stage=stage,
        wrapped=wrapped,
    )


def _with_dequantised(work: Work, sizes: Sizes, card: Card, moved: Passes) -> Passes:
    """A quantised base is made whole in each pass."""
    if not work.dequantised_bytes:
        return moved
    once = work.dequantised_bytes / card.memory_bandwidth / sizes.tensor
    return Passes(forward=moved.forward + once, backward=moved.backward + once)


def forward_seconds(plan: Plan, work: Work, sizes: Sizes, card: Card) -> Number:
    """A pass of another model of the training method, which only reads its logits: one of the head's three products, and half the loss."""
    one = micro_batch(plan, work, sizes, card)
    return one.forward + one.head / 3 + one.loss / 2
