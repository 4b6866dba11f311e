"""Seconds of everything that is no product: norms, residual additions, activations and the loss move their tensors through memory.

Each kernel reads its operands and writes its result once; counted as read or written elements a token. Sources of the kernels: torch's
native layer_norm and its backward; transformers models/llama/modeling_llama.py (LlamaRMSNorm: seven kernels, most in fp32);
Liger-Kernel ops/{rms_norm,swiglu}.py and torch.compile (one kernel each).
"""

from __future__ import annotations

from math import prod

from peakgate.memory.dtypes import ITEMSIZE
from peakgate.memory.plan import Plan
from peakgate.memory.profiles import profile_of
from peakgate.memory.step_time.arithmetic import Number
from peakgate.memory.step_time.card import Card
from peakgate.memory.step_time.products import Passes, Rows
from peakgate.memory.step_time.work import Work

Pair = tuple[float, float]
"""Of the forward and of the backward pass."""

NORM: Pair = (2, 3)
UNFUSED_NORM: Pair = (18, 35)
"""Half the bytes of 16-bit inputs: to fp32 2 + 4, square 4 + 4, mean 4, multiply 4 + 4, to 16 bits 4 + 2, weight 2 + 2, and 4 for the
input once more; backward, weight 10, cast 6, multiply 24, square 12, add 12, cast 6."""
RESIDUAL: Pair = (3, 3)
PLAIN: Pair = (2, 3)
GATED: Pair = (3, 5)
UNFUSED_GATED: Pair = (5, 8)
"""Activation and product with the gate are two kernels."""
ROTATED: Pair = (2, 2)
NETWORK: Pair = (2, 3)
"""Each operation of a plain network reads and writes its output's size."""

LOGIT_BYTES = {"full": 38, "chunked": 38, "vocab-parallel": 30, "in-place": 8, "fused": 8}
"""Bytes of one logit; losses of training methods as the full one. full: written 2, to fp32 2 + 4, log-softmax 4 + 4, backward 4 + 4 for the
loss, 4 + 4 for log-softmax, to 16 bits 4 + 2 (torch.nn.functional.cross_entropy after transformers loss/loss_utils.py's upcast).
vocab-parallel: in place, without the loss's own gradient (megatron/core/tensor_parallel/cross_entropy.py). in-place, fused: written 2, read
twice 4, gradient 2 (Liger ops/cross_entropy.py)."""


def layer_passes(plan: Plan, work: Work, card: Card, rows: Rows) -> Passes:
    """One micro-batch's norms, additions and activations of all layers. Sequence parallelism divides those outside tensor parallel parts
    (Korthikanti et al. 2022, arXiv 2205.05198, section 4.2.2)."""
    itemsize = ITEMSIZE[plan.formats.compute]
    divided = rows.divided
    outside = divided if plan.degrees.sequence_parallel else rows.whole
    out, inner = _outside(plan), _inside(plan, work)
    scale = work.layers * itemsize / card.memory_bandwidth
    return Passes(
        forward=outside * (out[0] * scale) + divided * (inner[0] * scale),
        backward=outside * (out[1] * scale) + divided * (inner[1] * scale),
    )


def loss_seconds(plan: Plan, work: Work, card: Card, rows: Rows) -> Number:
    """The logits of one micro-batch, whose vocabulary tensor parallelism divides."""
    if not any(product.part == "head" for product, _ in work.products):
        return 0.0
    return rows.divided * (plan.architecture.dims["V"] * LOGIT_BYTES.get(plan.loss, LOGIT_BYTES["full"]) / card.memory_bandwidth)


def _outside(plan: Plan) -> Pair:
    """Elements a token and layer of norms and residual additions, two of each."""
    h = plan.architecture.dims["h"]
    norm = norm_elements(plan)
    return (2 * h * (norm[0] + RESIDUAL[0]), 2 * h * (norm[1] + RESIDUAL[1])) if not plan.architecture.network else (0, 0)


def norm_elements(plan: Plan) -> Pair:
    """Of one norm, a token and channel."""
    ours = profile_of(plan.profile).transformers and not plan.compiled
    unfused = plan.architecture.roles["norm"].startswith("rms_norm") and ours and "rms_norm" not in plan.fused_kernels
    return UNFUSED_NORM if unfused else NORM


def _inside(plan: Plan, work: Work) -> Pair:
    """Elements a token and layer of the activation and of rotated queries and keys."""
    arch, dims = plan.architecture, plan.architecture.dims
    if arch.network:
        made = sum(prod(layer.made.shape) for layer in arch.network.layers) / work.layers
        return made * NETWORK[0], made * NETWORK[1]
    act = activation_elements(plan)
    rotated = (dims["q"] + dims["kv"]) * bool(dims.get("rope"))
    return act[0] + rotated * ROTATED[0], act[1] + rotated * ROTATED[1]


def activation_elements(plan: Plan) -> Pair:
    """Of the activation inside the feed-forward part, a token and layer."""
    arch, dims = plan.architecture, plan.architecture.dims
    inner = dims["k"] * dims["f"] + dims.get("fs", 0) if dims["E"] else dims["f"]
    kinds = PLAIN if arch.roles["mlp"] in PLAIN_PARTS else UNFUSED_GATED if _splits_gate(plan) else GATED
    return inner * kinds[0], inner * kinds[1]


PLAIN_PARTS = ("mlp_plain", "mlp_nested", "mlp_bloom", "mlp_mpt", "mlp_residual")
"""Blocks of a feed-forward part without a gate."""


def _splits_gate(plan: Plan) -> bool:
    return profile_of(plan.profile).transformers and not plan.compiled and not plan.fused_kernels & {"swiglu", "geglu"}
