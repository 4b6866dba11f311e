"""Bloom and MPT: positions as a bias of the scores, an eager attention of their own.

Sources: transformers models/{bloom,mpt}/modeling_*.py.
"""

from __future__ import annotations

from peakgate.memory.blocks import parse

BLOCKS = parse("""
attention_bloom x residual
  c = linear.qkv x -> qkv
  q = slice c -> q
  k = slice c -> q
  v = slice c -> q
  q = heads_free q
  k = heads_free k
  v = heads_free v
  q = for_matmul q
  k = for_matmul k
  v = for_matmul v
  s = scaled_scores q k -> scores
  w = add_small s
  p = softmax_up w
  p = dropout_attention p
  o = matmul p v -> q
  o = merge_heads o
  o = linear.o o -> h
  o = dropout_hidden o
  return add residual o
layer_bloom x
  n = norm x
  o = attention n x
  n = norm o
  return mlp n o
mlp_bloom x residual
  x = linear.up x -> f
  x = act x
  o = linear.down x -> h
  o = dropout_hidden o
  return add residual o
embed_normed x                               # bloom: a norm behind the embedding
  _e = embedding.V x -> h
  e = require_grad _e
  return norm e
attention_mpt x
  c = linear.qkv x -> qkv
  q, k, v = split3 c
  q = heads q
  k = heads_free k
  v = heads v
  _q = for_matmul q
  _k = for_matmul k
  _w = matmul _q _k -> scores
  w = scale _w
  w = add_float32 w                          # the table of positions is fp32
  w = masked_fill w mask
  _p = softmax w
  p = to_compute _p
  p = dropout_attention p
  _v = for_matmul v
  o = matmul p _v -> q
  o = merge_heads o
  return linear.o o -> h
attention_mpt_fused x                        # llm-foundry's attn_impl flash: the kernel makes the positions' bias itself
  c = linear.qkv x -> qkv
  q, k, v = split3 c
  o = core q k v
  return linear.o o -> h
layer_mpt x
  n = norm x
  o = attention n
  _o = dropout_hidden o
  x = add _o x
  n = norm x
  return mlp n x
mlp_mpt x residual
  x = linear.up x -> f
  x = act x
  o = linear.down x -> h
  o = dropout_hidden o
  return add o residual
""")
