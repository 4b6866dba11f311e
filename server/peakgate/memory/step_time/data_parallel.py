"""Communication of data parallelism: gradients are reduced, and weights that are sharded are gathered.

Volumes (ZeRO, Rajbhandari et al. 2020, arXiv 1910.02054, section 7): plain data parallelism reduces gradients to all, 2(d - 1) / d of their
bytes; stages 1 and 2 scatter the sums and gather the weights, as much; stage 3 and FSDP gather the weights twice and scatter the sums, 1.5
times as much. When: once a step where micro-batches before the last run under no_sync or sum up whole gradients (DDP, stage 1); every
micro-batch for stages 2 and 3 and FSDP. What is hidden: gradients run beside the backward pass of their micro-batch, gathers beside the
pass that they feed (`hidden_behind`). Stages 1 and 2 gather the new weights behind the optimizer's step, with nothing beside it (deepspeed
runtime/zero/stage_1_and_2.py: step; Megatron-LM: --overlap-param-gather is off).
"""

from __future__ import annotations

from dataclasses import dataclass

from peakgate.memory.dtypes import ITEMSIZE, stored_bytes
from peakgate.memory.plan import FSDP, Plan
from peakgate.memory.profiles import profile_of
from peakgate.memory.step_time.arithmetic import Number, hidden_behind, larger, others
from peakgate.memory.step_time.card import Card, seconds_per_byte
from peakgate.memory.step_time.layers import MicroBatch
from peakgate.memory.step_time.sizes import Sizes
from peakgate.memory.step_time.work import Work
from peakgate.memory.trained import gradient_itemsize

GATHERED = ("zero3", *FSDP)


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Seconds of one step: what is waited for, and all that is sent."""

    gradients: Number
    weights: Number
    sent: Number


def traffic_of(plan: Plan, work: Work, sizes: Sizes, card: Card, micro: MicroBatch) -> Traffic:
    """The communication of the plan's kind of sharding."""
    if plan.degrees.sharding in GATHERED:
        return _gathered(plan, work, sizes, card, micro)
    return _replicated(plan, work, sizes, card, micro)


def elements_on_rank(common: float, experts: float, sizes: Sizes) -> Number:
    """Elements that a rank works with: a stage's, divided by tensor and expert parallelism."""
    own = common + experts / sizes.expert if experts else common
    return own / (sizes.tensor * sizes.pipeline)


def _ranks(sizes: Sizes) -> Number:
    """Context parallel ranks reduce gradients too."""
    return sizes.data * sizes.context


def gradient_bytes(plan: Plan, work: Work, sizes: Sizes) -> Number:
    """Of a rank, whole."""
    itemsize = gradient_itemsize(plan)
    return elements_on_rank(work.trained * itemsize, work.trained_experts * itemsize, sizes)


def weight_bytes(plan: Plan, work: Work, sizes: Sizes) -> Number:
    """Of a rank, whole, in the format in which they are gathered: FSDP's mixed precision casts shards first (fsdp/api.py:
    MixedPrecision)."""
    formats = plan.formats
    if plan.lora and plan.lora.base_dtype in ("int8", "int4", "nf4"):
        common, experts = (float(stored_bytes(n, plan.lora.base_dtype)) for n in (work.total, work.total_experts))
    else:
        wide = ITEMSIZE[formats.parameters if formats.autocast else formats.compute]
        itemsize = 1 if plan.float8_gather else wide
        common, experts = float(work.total * itemsize), float(work.total_experts * itemsize)
    return elements_on_rank(common, experts, sizes)


def overlaps(plan: Plan) -> bool:
    """Whether gradients leave while others are made: DDP's buckets do, DeepSpeed's with overlap_comm, which is on for stage 3
    (deepspeed runtime/zero/config.py), Megatron-LM's with --overlap-grad-reduce, which a plan does not say and which is off."""
    if plan.framework == "megatron":
        return False
    return plan.degrees.sharding not in ("zero1", "zero2") or plan.framework != "deepspeed" or plan.overlap_comm


def _replicated(plan: Plan, work: Work, sizes: Sizes, card: Card, micro: MicroBatch) -> Traffic:
    ranks, sharding = _ranks(sizes), plan.degrees.sharding
    per_byte = seconds_per_byte(card, sizes, ranks, sizes.tensor) * others(ranks)
    once = gradient_bytes(plan, work, sizes) * per_byte
    reduced = once * (1.0 if sharding in ("zero1", "zero2") else 2.0)
    left = hidden_behind(reduced, micro.backward, work.layers) if overlaps(plan) else reduced
    times: Number = sizes.accumulation if sharding == "zero2" else 1.0
    trained = elements_on_rank(work.trained, work.trained_experts, sizes) * ITEMSIZE[plan.formats.compute]
    gathered = trained * per_byte if sharding in ("zero1", "zero2") else 0.0
    return Traffic(gradients=left * times, weights=gathered, sent=reduced * times + gathered)


def _gathered(plan: Plan, work: Work, sizes: Sizes, card: Card, micro: MicroBatch) -> Traffic:
    """Every micro-batch gathers before its forward pass and, where weights were let go, before its backward pass."""
    per_byte = seconds_per_byte(card, sizes, sizes.shard, sizes.tensor) * others(sizes.shard)
    gather = weight_bytes(plan, work, sizes) * per_byte
    again = gather * float(plan.reshard_after_forward)
    sums = gradient_bytes(plan, work, sizes)
    reduce = sums * per_byte + _between_copies(plan, sizes, card, sums)
    pieces = work.layers
    before_backward = hidden_behind(again, micro.backward, pieces)
    weights = hidden_behind(gather, micro.forward, pieces) + before_backward
    gradients = hidden_behind(again + reduce, micro.backward, pieces) - before_backward
    steps = sizes.accumulation
    reduced: Number = 1.0 if adds_up_whole(plan) else steps
    return Traffic(gradients=gradients * reduced, weights=weights * steps, sent=(gather + again) * steps + reduce * reduced)


def adds_up_whole(plan: Plan) -> bool:
    """Whether micro-batches before the last keep whole gradients, under no_sync, and nothing is reduced behind them."""
    return plan.degrees.sharding in FSDP and profile_of(plan.profile).adds_up_whole


def _between_copies(plan: Plan, sizes: Sizes, card: Card, sums: Number) -> Number:
    """Hybrid sharding reduces each shard's sums between the copies of the model (FSDP, arXiv 2304.11277, section 3.2.2)."""
    if plan.degrees.sharding != "hsdp":
        return 0.0
    copies = larger(_ranks(sizes) / sizes.shard, 1.0)
    return sums / sizes.shard * 2.0 * others(copies) * seconds_per_byte(card, sizes, copies, sizes.tensor * sizes.shard)
