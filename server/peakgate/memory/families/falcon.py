"""Falcon: parallel parts, one key-value head or groups of them, always a mask.

Sources: transformers models/falcon/modeling_falcon.py.
"""

from __future__ import annotations

from peakgate.memory.blocks import parse

BLOCKS = parse("""
core_eager_mqa q k v                         # the product broadcasts the one head; the expanded factors are copied
  _q = for_matmul q
  k = repeat_view k -> q
  _k = for_matmul k
  _w = matmul _q _k -> scores
  w = scale _w
  w = add_small w
  w = softmax_up w
  v = repeat_view v -> q
  _v = for_matmul v
  _p = product_cast w
  o = matmul _p _v -> q
  return merge_heads o
core_eager_full q k v                        # falcon: keys and values already have every head
  _q = for_matmul q
  _k = for_matmul k
  _w = matmul _q _k -> scores
  w = scale _w
  w = add_small w
  w = softmax_up w
  _v = for_matmul v
  _p = product_cast w
  o = matmul _p _v -> q
  return merge_heads o
core_efficient_full q k v
  _m = bias_of_mask mask
  return efficient q k v _m
attention_falcon_mqa x                       # one key-value head, broadcast by the kernel
  c = linear.qkv x -> qkv
  q = slice c -> q
  k = pick_columns c -> kv
  v = pick_columns c -> kv
  q = heads_free q
  k = heads_free k
  v = heads_free v
  r = rope q
  k2 = rope k
  drop q k
  o = core r k2 v
  return linear.o o -> h
layer_falcon_mqa x                           # one norm for both parts
  n = norm x
  o = attention n
  _m = mlp n
  y = add_in_place _m o
  _d = dropout_hidden y
  return add x _d
attention_falcon x                           # new decoder: keys and values picked out of groups, then copied to every head
  c = linear.qkv x -> qkv
  q = slice c -> q
  k = pick_columns c -> kv
  v = pick_columns c -> kv
  _q = contiguous q
  _k = repeat_heads k -> q
  _v = repeat_heads v -> q
  drop q k v
  q = heads_free _q
  k = heads_free _k
  v = heads_free _v
  r = rope q
  k2 = rope k
  drop q k
  o = core r k2 v
  return linear.o o -> h
layer_falcon x                               # parallel residual, two norms, the sum of the parts in place
  n = norm x
  m = norm x
  o = attention n
  _m = mlp m
  y = add_in_place _m o
  _d = dropout_hidden y
  return add x _d
""")
