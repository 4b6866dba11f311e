"""The time of a step, put together."""

from __future__ import annotations

from peakgate.memory.dtypes import ITEMSIZE
from peakgate.memory.pipeline import ZERO_BUBBLE
from peakgate.memory.plan import Plan
from peakgate.memory.step_time.arithmetic import Number, larger
from peakgate.memory.step_time.card import Card
from peakgate.memory.step_time.data_parallel import traffic_of
from peakgate.memory.step_time.host import host_seconds
from peakgate.memory.step_time.layers import MicroBatch, forward_seconds, micro_batch
from peakgate.memory.step_time.model_parallel import context_seconds, expert_seconds, tensor_seconds
from peakgate.memory.step_time.parts import StepTime
from peakgate.memory.step_time.sizes import Sizes, as_floats
from peakgate.memory.step_time.update import accumulation_seconds, update_seconds
from peakgate.memory.step_time.work import work_of

ZERO_BUBBLE_SHARE = 1 / 3
"""ZB-H1 leaves (p - 1)(T_F + T_B - T_W) of 1F1B's (p - 1)(T_F + T_B + T_W) (Qi et al. 2024, arXiv 2401.10241, table 1), and the three are
alike."""


def step_time(plan: Plan, sizes: Sizes, card: Card) -> StepTime:
    """Seconds of one optimizer step of a rank of the fullest stage.

    The words come from `plan`, the numbers from `sizes` alone: one plan or an array of plans with the same words. Not counted: Python's own
    time (a step of few tokens waits for it), reading data, generation, evaluation, saving.
    """
    s, work = as_floats(sizes), work_of(plan)
    micro = micro_batch(plan, work, s, card)
    tensor = tensor_seconds(plan, work, s, card, micro)
    context = context_seconds(plan, work, s, card, micro, micro.cores)
    expert = expert_seconds(plan, work, s, card, micro)
    stage = micro.products + micro.cores + micro.elementwise + micro.recompute + tensor + context + expert
    traffic = traffic_of(plan, work, s, card, micro)
    steps = s.accumulation
    return StepTime(
        products=(micro.products + micro.head) * steps,
        attention=micro.cores * steps,
        elementwise=micro.elementwise * steps,
        loss=micro.loss * steps,
        recompute=micro.recompute * steps,
        accumulation=accumulation_seconds(plan, work, s, card),
        data_parallel=traffic.gradients,
        gathered_weights=traffic.weights,
        tensor_parallel=tensor * steps,
        context=context * steps,
        expert=expert * steps,
        pipeline_bubble=stage * (s.pipeline - 1.0) / s.virtual_pipeline * _bubble_share(plan),
        pipeline_transfers=_transfers(plan, s, card, micro),
        offload=host_seconds(plan, work, s, card, micro),
        optimizer=update_seconds(plan, work, s, card),
        companions=_companions(plan, s, card) * steps,
        samples=s.micro_batch * steps * s.data,
        communication=traffic.sent,
    )


def _bubble_share(plan: Plan) -> float:
    """Of the (p - 1) / v micro-batches' time that a stage waits for the others, which have no head (Narayanan et al. 2021, arXiv
    2104.04473, section 2.2: (p - 1) / (m·v) of a step of m micro-batches)."""
    return ZERO_BUBBLE_SHARE if plan.degrees.schedule == ZERO_BUBBLE else 1.0


def _transfers(plan: Plan, sizes: Sizes, card: Card, micro: MicroBatch) -> Number:
    """A stage passes each micro-batch on and its gradient back, once a chunk; tensor parallel ranks send a part each (section 4.1)."""
    stride = sizes.tensor * sizes.context * sizes.data
    crosses = stride * sizes.pipeline > sizes.node_gpus
    per_byte = larger(crosses * (1.0 / card.between_nodes), 1.0 / card.inside_node) * (sizes.pipeline > 1)
    sent = micro.divided * (2.0 * plan.architecture.dims["h"] * ITEMSIZE[plan.formats.compute])
    return sent * per_byte * sizes.virtual_pipeline * sizes.accumulation


def _companions(plan: Plan, sizes: Sizes, card: Card) -> Number:
    """Other models of the training method: a forward pass, and a backward pass of those that are trained."""
    total: Number = 0.0
    for each in plan.companions:
        work = work_of(each.plan)
        if each.trained:
            one = micro_batch(each.plan, work, sizes, card)
            total = total + one.forward + one.backward + one.head + one.loss
        else:
            total = total + forward_seconds(each.plan, work, sizes, card)
    return total
