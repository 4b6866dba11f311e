"""Composer with llm-foundry: MPT's own layers on FSDP1.

Sources: llm-foundry models/layers/blocks.py (MPTBlock), attention.py (Wqkv in one matrix, flash attention), ffn.py (MPTMLP, exact GELU),
models/mpt/modeling_mpt.py (learned positions, no biases, tied head, low_precision_layernorm, loss_fn: fused_crossentropy). The loss is
flash_attn.losses.cross_entropy: it keeps the logits and one number a row, and makes their gradient in their own format.
"""

from __future__ import annotations

from peakgate.memory import blocks, kernels
from peakgate.memory.profiles.profile import Profile

BLOCKS = blocks.parse("""
attention_foundry x
  _c = linear.qkv x -> qkv
  q, k, v = split3 _c
  c = core q k v
  return linear.o c -> h
layer_foundry x
  a = norm x
  b = attention a
  _d = dropout_hidden b
  x = add x _d
  m = norm x
  n = mlp m
  _d = dropout_hidden n
  return add x _d
mlp_foundry x
  _u = linear.up x -> f
  _g = gelu _u
  return linear.down _g -> h
""")

KERNELS = kernels.parse("""
loss_fused_rows(x,t) | l!=rows:4 y=rows:4 | x(x,t,l): gx=x
""")

MPT = {
    "layer": "layer_foundry",
    "norm": "layer_norm",
    "attention": "attention_foundry",
    "mlp": "mlp_foundry",
    "act": "gelu",
    "embed": "embed_positions",
    "head": "head_linear",
    "dropout_embedding": "dropout_hidden",
    "core": "core_flash",
    "causal_loss": "loss_fused_rows",
    "loss_upcast": "pass",
}

PROFILE = Profile(roles={"mpt": MPT})
