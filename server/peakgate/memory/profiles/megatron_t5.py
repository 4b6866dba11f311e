"""Megatron-LM's T5: layers like its GPT's, learned positions that both stacks share, a second attention over the encoder's output.

Sources: Megatron-LM megatron/core/models/T5/{t5_spec,t5_model}.py, examples/t5/pretrain_t5.py; Transformer Engine 2.11
transformer_engine/pytorch/attention/dot_product_attention/backends.py (UnfusedDotProductAttention).
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from peakgate.memory.architecture import Architecture
from peakgate.memory.blocks import parse
from peakgate.memory.kernels import parse as parse_kernels

KERNELS = parse_kernels("""
# rows of padding are zeroed after the softmax; the mask of all pairs of positions is built in every layer
fill_padding | y=x m!=square*b:1       | x(m): gx=x
fill_padding_cross | y=x m!=square_cross*b:1 | x(m): gx=x
""")

BLOCKS = parse("""
layer_megatron_decoder x
  _n = attention x
  _n = dropout_hidden _n
  x = add x _n
  _n = attention_cross x
  _n = dropout_hidden _n
  x = add x _n
  _n = mlp x
  _n = dropout_hidden _n
  return add x _n
attention_megatron_cross x                   # keys and values are one product of the encoder's output, and stay views of it
  _n = norm x
  _q = linear.q _n -> q
  q = view _q
  _c = linear.kv encoded -> kv2
  k, v = halves _c
  o = cross_core q k v
  return linear.o o -> h
core_unfused_padded q k v
  _w = scores_te q k -> scores
  _p = softmax_te _w
  _p = zero_padding _p
  _d = dropout_attention _p
  _o = matmul _d v -> q
  return copied _o -> q
core_unfused_cross q k v
  _w = scores_te q k -> scores_cross
  _p = softmax_te _w
  _p = zero_padding_cross _p
  _d = dropout_attention _p
  _o = matmul _d v -> q
  return copied _o -> q
""")

T5 = {
    "attention_cross": "attention_megatron_cross",
    "cross_core": "core_te",
    "eager/core": "core_unfused_padded",
    "eager/cross_core": "core_unfused_cross",
    "decoder/layer": "layer_megatron_decoder",
    "decoder/zero_padding": "pass",
    "final": "layer_norm",
    "head": "head_linear",
}
"""Beside the roles of Megatron-LM's GPT; a decoder's own tokens have a causal mask only."""

BIASES = frozenset({"q", "kv", "o", "up", "down", "head"})

POSITIONS = 512
"""Rows of the table when nothing is said (examples/t5/train_t5_220m_distributed.sh: --max-position-embeddings 512)."""

UNUSED = ("buckets",)
"""Sizes of the published model that this one does not have: it has no relative positions."""


@lru_cache(maxsize=64)
def as_built(published: Architecture) -> Architecture:
    """What Megatron-LM builds of a T5: biases, one learned table of positions, no relative ones."""
    return replace(
        published,
        biases=BIASES,
        positions=published.positions or POSITIONS,
        dims={name: size for name, size in published.dims.items() if name not in UNUSED},
        flags=published.flags | {"shared_positions"},
        decoder={},
    )
