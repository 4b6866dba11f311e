"""Liger's Triton kernels, which take the place of single modules of Hugging Face's models.

Sources: Liger-Kernel at ead96b61 (August 2026), src/liger_kernel: ops/{rms_norm,swiglu,geglu,rope,cross_entropy}.py and
ops/fused_linear_cross_entropy.py for what each keeps and allocates, transformers/monkey_patch.py for which models get which,
transformers/{rms_norm,swiglu}.py for the settings. Many of them write a gradient where its factor or the incoming gradient was. A weight's
gradient is summed in fp32, one row a multiprocessor.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from peakgate.memory import blocks, kernels

if TYPE_CHECKING:
    from peakgate.memory.plan import Plan

_PARTIAL = "p=w*multiprocessors:4 s=w:4 gw=w -s -p"
_CHUNKS = "l=rows:4 e=chunk_before:product {casts} c=chunk:product {free} i=chunk_hidden:product -i -e"
_PLAIN = _CHUNKS.format(casts="", free="")
_CAST = _CHUNKS.format(casts="a=chunk_hidden:product t=w:product", free="-a")

KERNELS = kernels.parse(f"""
rms_norm_liger | y=x r!=rows:4   | x,w(x,r,w): gx~gy {_PARTIAL}             # in_place: the gradient of x is written over that of y
rms_norm_liger_copied | y=x r!=rows:4 | x,w(x,r,w): gx=x {_PARTIAL}         # Gemma 2 and 3, OLMo 2: a residual still needs that of y
gated_liger(x0,x1) | y=x0        | x0,x1(x0,x1): gx0~x0 gx1~x1               # both gradients over their factors
rope_liger(x,c) | y~x            | x(c): gx~gy
rope_liger_copied(x,c) | y~x     | x(c): gx=x                                # a gradient that has heads before the sequence is copied first
cross_entropy_liger(x,t) | l=rows:4 m=rows:1 -m y=four -l | x(x): gx~x       # the fp32 logits become their gradient
# ops/fused_linear_cross_entropy.py: both gradients are made in forward, chunk by chunk; the names of a chunk live into the next one
fused_loss   | k!=x g!=w {_PLAIN} m=w:product f=w:4 -m -f -c y=four -l | w,x(k,g): gx~k gw~g
fused_loss_fp32 | k!=x g!=w {_PLAIN} m=w -m -c y=four -l | w,x(k,g): gx~k gw~g   # .float() of what is fp32 is no copy
fused_loss_autocast | k!=x g!=w {_CAST} -t a=chunk_hidden:product -a -c y=four -l | w,x(k,g): gx~k gw~g   # torch.addmm sums in fp32
fused_loss_frozen | k!=x {_PLAIN} -c y=four -l | w: gw=w; x(k): gx~k
fused_loss_frozen_autocast | k!=x {_CAST} -t -c y=four -l | w: gw=w; x(k): gx~k
""")

_ATTENTION = """
  _q = linear.q x -> q
{norm_q}  q = heads_free _q
  _k = linear.k x -> kv
{norm_k}  k = heads_free _k
  _v = linear.v x -> kv
  v = value_heads _v
  q = rotated_q q
  k = rotated_k k
  o = core q k v
  return linear.o o -> h
"""

BLOCKS = blocks.parse(
    "attention_llama_liger x"
    + _ATTENTION.format(norm_q="", norm_k="")
    + "attention_qwen3_liger x"
    + _ATTENTION.format(norm_q="  _q = norm _q -> a\n", norm_k="  _k = norm _k -> n\n")
    + """
rope_in_place x
  return rope_liger x cos
rope_in_place_copied x
  return rope_liger_copied x cos
mlp_gated_liger x
  _g = linear.gate x -> f
  _u = linear.up x -> f
  _m = gated_liger _g _u
  return linear.down _m -> h
mlp_fused_liger x                            # phi3: the halves of one matrix are made contiguous inside the kernel
  u = linear.gate_up x -> f2
  g, u = halves u
  _a = contiguous g
  _b = contiguous u
  _m = gated_liger _a _b
  return linear.down _m -> h
"""
)

Renames = Mapping[str, str]

_NORM, _NORM_COPIED = "rms_norm_liger", "rms_norm_liger_copied"
_ROPE = {"attention_llama": "attention_llama_liger", "attention_qwen3": "attention_qwen3_liger"}
_GATED = {"mlp_gated": "mlp_gated_liger"}
_LOSSES: dict[str, Renames] = {
    "cross_entropy": {"causal_loss": "cross_entropy_liger"},
    "fused_linear_cross_entropy": {},  # `resolve` makes it the loss
}
_LLAMA: dict[str, Renames] = _LOSSES | {"rms_norm": {"rms_norm": _NORM}, "rope": _ROPE, "swiglu": _GATED}
_MOE = {name: renames for name, renames in _LLAMA.items() if name != "swiglu"}
_GEMMA: dict[str, Renames] = _LOSSES | {"rms_norm": {"rms_norm_gemma": _NORM}, "rope": _ROPE, "geglu": _GATED}

FAMILIES: dict[str, Mapping[str, Renames]] = {
    **dict.fromkeys(("llama", "mistral", "qwen2", "qwen3", "smollm3"), _LLAMA),
    **dict.fromkeys(("mixtral", "qwen3_moe"), _MOE),
    "olmo2": _LOSSES | {"rms_norm": {"rms_norm_olmo": _NORM_COPIED}, "swiglu": _GATED},
    "phi3": _LOSSES | {"rms_norm": {"rms_norm": _NORM}, "swiglu": {"mlp_fused": "mlp_fused_liger"}},
    "gemma": _GEMMA,
    "gemma2": _GEMMA | {"rms_norm": {"rms_norm_gemma": _NORM_COPIED}},
    "gemma3": _LOSSES | {"geglu": _GATED},
}
"""Model -> kernel -> what it replaces. Not counted, and so not here: experts (one kernel for all of them from transformers 5 on), and what
is handed queries or keys that are not contiguous (the norms of Gemma 3, the rotations of Phi-3, OLMo 2 and GPT-OSS)."""

ANYWHERE: Mapping[str, Renames] = {"gelu": {"gelu_new": "gelu"}}
"""Fused kernels that no library patches in: the model itself names them."""


def replaced(plan: Plan) -> dict[str, str]:
    """Blocks that the plan's fused kernels take the place of, by name."""
    known = {**ANYWHERE, **FAMILIES.get(plan.architecture.block, {})}
    out = {old: new for kernel in sorted(plan.fused_kernels) for old, new in known.get(kernel, {}).items()}
    if "rope" in plan.fused_kernels:
        out |= {"rotated_q": _rotation(copied=plan.attention == "eager"), "rotated_k": _rotation(copied=_repeats_keys(plan))}
    return out


def _rotation(*, copied: bool) -> str:
    return "rope_in_place_copied" if copied else "rope_in_place"


def _repeats_keys(plan: Plan) -> bool:
    """Whether keys are copied to all heads: their gradient then comes with heads before the sequence."""
    grouped = plan.architecture.dims["n"] < plan.architecture.dims["a"]
    return plan.attention == "eager" or (grouped and plan.attention == "sdpa" and (plan.builds_mask or plan.repeats_heads))


def unknown_kernels(plan: Plan) -> list[str]:
    """Fused kernels of the plan that are not counted for its model, where it is one of Hugging Face's."""
    return sorted(plan.fused_kernels - {*ANYWHERE, *FAMILIES.get(plan.architecture.block, {})})


def loss_kernel(plan: Plan) -> str:
    """The fused head and loss: its weight may be frozen, its products cast."""
    if plan.formats.autocast:
        return "fused_loss_frozen_autocast" if plan.lora else "fused_loss_autocast"
    if plan.lora:
        return "fused_loss_frozen"
    return "fused_loss_fp32" if plan.formats.compute == "float32" else "fused_loss"
