"""Seconds of the optimizer's step on the GPU, and of adding up gradients over micro-batches.

A fused kernel reads the weight, its gradient and its states once and writes all but the gradient; foreach and for-loop implementations run
one kernel an operation (torch/optim/adamw.py, `_multi_tensor_adam`: decay 2, lerp 3, multiply 2, add 3, root 2, divide 2, add 2, add 4
reads and writes; lion, sgd, adafactor, muon after their own functions). A kernel takes 3.8 µs however little it does (NVIDIA Technical
Blog, Getting Started with CUDA Graphs, 2019), so a loop over tensors pays that for each kernel of each tensor.
"""

from __future__ import annotations

from peakgate.memory.dtypes import ITEMSIZE
from peakgate.memory.optimizers import ROWS
from peakgate.memory.plan import SHARDED, Plan
from peakgate.memory.states import SHARDED_FROM
from peakgate.memory.step_time.arithmetic import Number, larger
from peakgate.memory.step_time.card import Card
from peakgate.memory.step_time.data_parallel import adds_up_whole, elements_on_rank, gradient_bytes
from peakgate.memory.step_time.sizes import Sizes
from peakgate.memory.step_time.work import Work
from peakgate.memory.trained import state_itemsize

KERNEL_SECONDS = 3.8e-6

UNFUSED: dict[str, tuple[int, int]] = {
    "adamw": (20, 8),
    "adam": (20, 8),
    "lamb": (28, 12),
    "lion": (13, 5),
    "sgd": (3, 1),
    "sgd-momentum": (8, 3),
    "adafactor": (14, 7),
    "muon": (8, 3),
}
"""Reads and writes of an element, and kernels; 8-bit optimizers are one kernel each (bitsandbytes csrc/kernels.cu)."""

CAST = 6
"""Bytes an autocast copy reads and writes: a 32-bit weight, its 16-bit copy (torch.amp: once a forward pass)."""


def owned_share(plan: Plan, sizes: Sizes) -> Number:
    """The part of a rank's weights that its optimizer steps."""
    return 1.0 / sizes.shard if plan.degrees.sharding in SHARDED else 1.0


def owned_elements(plan: Plan, work: Work, sizes: Sizes) -> Number:
    """Elements that the rank's optimizer steps; experts are divided over the data parallel ranks of their own, so over as many in all."""
    if plan.degrees.sharding not in SHARDED:
        return elements_on_rank(work.trained, work.trained_experts, sizes)
    common = work.trained / sizes.shard
    experts = work.trained_experts / larger(sizes.shard, sizes.expert) if work.trained_experts else 0.0
    return (common + experts) / (sizes.tensor * sizes.pipeline)


def update_seconds(plan: Plan, work: Work, sizes: Sizes, card: Card) -> Number:
    """The optimizer's step; none on the GPU where its states are in the host's memory."""
    if plan.offload_optimizer or (plan.offload_parameters and plan.degrees.sharding in ("fsdp", "hsdp")):
        return 0.0
    owned = owned_elements(plan, work, sizes)
    moved = owned * (_bytes_per_element(plan) / card.memory_bandwidth)
    launched = _kernels(plan) * work.tensors * KERNEL_SECONDS / sizes.pipeline
    products = work.orthogonal_flops / card.flops / (sizes.tensor * sizes.pipeline) if plan.optimizer == "muon" else 0.0
    return moved + launched + products


def _is_fused(plan: Plan) -> bool:
    return plan.implementation == "fused" or plan.optimizer not in UNFUSED


def _bytes_per_element(plan: Plan) -> float:
    row, formats = ROWS[plan.optimizer], plan.formats
    wide = state_itemsize(plan)
    stepped = wide if formats.master_weights != "none" or plan.lora else ITEMSIZE[formats.parameters]
    master = ITEMSIZE[formats.compute] * (formats.master_weights != "none")
    if not _is_fused(plan):
        return UNFUSED[plan.optimizer][0] * wide + master
    scale = ITEMSIZE["float32"] / row.scaled_block if row.scaled_block else 0.0
    state = (row.itemsize or wide) + scale
    return 2 * stepped + ITEMSIZE[formats.gradients] + 2 * row.copies * state + master


def _kernels(plan: Plan) -> float:
    """Launches a tensor: foreach and fused kernels take many tensors at once."""
    if plan.implementation == "for-loop" and not _is_fused(plan):
        return UNFUSED[plan.optimizer][1]
    return 1.0 if plan.optimizer not in UNFUSED else 0.0


def accumulation_seconds(plan: Plan, work: Work, sizes: Sizes, card: Card) -> Number:
    """Gradients of each micro-batch but the first are added to those before (read both, write one), and autocast casts the weights anew.

    Products that add up themselves do so beside their FLOP (megatron/core/tensor_parallel/layers.py: gradient_accumulation_fusion).
    """
    sharded = plan.degrees.sharding in SHARDED_FROM["gradients"] and not adds_up_whole(plan)
    held = gradient_bytes(plan, work, sizes) * (owned_share(plan, sizes) if sharded else 1.0)
    again = 0.0 if plan.fused_weight_gradients else 3.0 / card.memory_bandwidth
    added = (sizes.accumulation - 1.0) * held * again
    if not plan.formats.autocast:
        return added
    cast = elements_on_rank(work.total, work.total_experts, sizes) * (CAST / card.memory_bandwidth)
    return added + sizes.accumulation * cast
