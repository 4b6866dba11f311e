"""Gemma 2 and 3: norms around each part, a product with (1 + weight) in fp32, capped scores and logits.

Sources: transformers models/{gemma2,gemma3}/modeling_*.py.
"""

from __future__ import annotations

from peakgate.memory.blocks import parse

BLOCKS = parse("""
rms_norm_gemma x                             # product with (1 + weight) in fp32, cast last
  _f = to_float32 x
  o = rms_core _f -> groups
  _w = weight_plus_one o -> groups
  return to_compute _w
rms_core x
  _p = power x
  _m = mean _p -> groups
  _e = add_small _m
  _r = rsqrt _e
  return multiply_rows x _r
attention_gemma3 x                           # norms of queries and keys after the transpose
  _q = linear.q x -> q
  q = heads _q
  _k = linear.k x -> kv
  k = heads _k
  _v = linear.v x -> kv
  v = value_heads _v
  q = norm q -> a
  k = norm k -> n
  r = rope q
  k2 = rope k
  drop q k
  o = core r k2 v
  return linear.o o -> h
layer_sandwich x                             # gemma: a norm before and after each part
  n = norm x
  n = attention n
  n = norm n
  x = add x n
  n = norm x
  n = mlp n
  n = norm n
  return add x n
embed_scaled x
  _e = embedding.V x -> h
  _e = require_grad _e
  return scale _e
head_capped x
  l = linear.head x -> V
  l = scale l
  l = tanh l
  return scale l
""")
