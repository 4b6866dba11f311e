"""Communication inside a layer, one micro-batch at a time: nothing runs beside it but where that is said.

Sources: Megatron-LM (Shoeybi et al. 2019, arXiv 1909.08053, section 3: two all-reduces of b·s·h in the forward pass and two in the backward
pass; Korthikanti et al. 2022, arXiv 2205.05198, section 4.2.2: sequence parallelism sends as much); Ring Attention (Liu et al. 2023,
arXiv 2310.01889, section 3: hidden while a block's attention takes longer than its transfer); Llama 3 (arXiv 2407.21783, section 3.3.2:
keys and values are gathered before the core runs); DeepSpeed-Ulysses (arXiv 2309.14509, section 3.1: all-to-all of q, k, v and the output);
GShard (Lepikhin et al. 2020, arXiv 2006.16668, section 3: tokens are sent to their experts and back, so twice forward, twice backward).
"""

from __future__ import annotations

from peakgate.memory.dtypes import ITEMSIZE
from peakgate.memory.plan import Plan
from peakgate.memory.step_time.arithmetic import Number, others, positive
from peakgate.memory.step_time.card import Card, seconds_per_byte
from peakgate.memory.step_time.layers import MicroBatch
from peakgate.memory.step_time.recompute import runs_again
from peakgate.memory.step_time.sizes import Sizes
from peakgate.memory.step_time.work import Work

ALL_REDUCES = 4
"""A layer's: two forward, two backward; full recomputation repeats the forward ones."""


def _repeated(plan: Plan, micro: MicroBatch) -> Number:
    """Forward passes' worth of collectives in a step: one forward, one backward, and what runs again."""
    return 2.0 + runs_again(plan).collectives * micro.wrapped


def tensor_seconds(plan: Plan, work: Work, sizes: Sizes, card: Card, micro: MicroBatch) -> Number:
    """All-reduces of one micro-batch's layers: a ring sends each byte 2(t - 1) / t times."""
    per_byte = seconds_per_byte(card, sizes, sizes.tensor, 1.0)
    once = plan.architecture.dims["h"] * ITEMSIZE[plan.formats.compute] * work.layers * ALL_REDUCES / 2 * 2.0
    return micro.rows * once * others(sizes.tensor) * per_byte * (micro.stage * _repeated(plan, micro))


def context_seconds(plan: Plan, work: Work, sizes: Sizes, card: Card, micro: MicroBatch, cores: Number) -> Number:
    """What of the exchange of keys and values is not hidden; `cores`: the seconds of all cores of the micro-batch."""
    dims, kind = plan.architecture.dims, plan.degrees.context_type
    itemsize = ITEMSIZE[plan.formats.compute]
    per_byte = seconds_per_byte(card, sizes, sizes.context, sizes.tensor)
    width = 2 * dims["kv"] + (2 * dims["q"] if kind == "ulysses" else 0)
    travels = others(sizes.context) if kind == "ulysses" else sizes.context - 1.0
    once = micro.divided * travels * per_byte * (width * itemsize * work.layers)
    sent = once * (micro.stage * (_repeated(plan, micro) + (0.0 if kind == "ulysses" else 1.0)))
    return positive(sent - cores) if kind == "ring" else sent


def expert_seconds(plan: Plan, work: Work, sizes: Sizes, card: Card, micro: MicroBatch) -> Number:
    """Tokens go to their experts and come back, in every routed layer."""
    if not work.routed_layers:
        return 0.0
    dims = plan.architecture.dims
    per_byte = seconds_per_byte(card, sizes, sizes.expert, sizes.tensor)
    once = 2.0 * dims["k"] * dims["h"] * ITEMSIZE[plan.formats.compute] * work.routed_layers
    fullest = plan.degrees.imbalance_permille / 1000
    return micro.divided * others(sizes.expert) * per_byte * (once * fullest) * (micro.stage * _repeated(plan, micro))
