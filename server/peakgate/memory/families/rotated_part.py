"""Rotary positions on a part of each head: Phi, StableLM, Nemotron, GLM, GPT-J.

Sources: transformers models/{phi,stablelm,nemotron,glm,gptj}/modeling_*.py.
"""

from __future__ import annotations

from peakgate.memory.blocks import parse

BLOCKS = parse("""
attention_rotated_part x                     # phi, stablelm: the attention itself cuts and joins
  _q = linear.q x -> q
  q = heads _q
  _k = linear.k x -> kv
  k = heads _k
  _v = linear.v x -> kv
  v = value_heads _v
  r = slice q -> rotary
  p = slice q -> unrotated
  s = slice k -> rotary_kv
  t = slice k -> unrotated_kv
  r = rope r
  s = rope s
  q = join r p -> q
  k = join s t -> kv
  o = core q k v
  return linear.o o -> h
attention_rotated_call x                     # nemotron, glm: a function cuts and joins, and lets its parts go
  _q = linear.q x -> q
  q = heads _q
  _k = linear.k x -> kv
  k = heads _k
  _v = linear.v x -> kv
  v = value_heads _v
  c = own_tables cos
  r = slice q -> rotary
  p = slice q -> unrotated
  s = slice k -> rotary_kv
  t = slice k -> unrotated_kv
  r = rope_by r c
  s = rope_by s c
  q2 = join r p -> q
  k2 = join s t -> kv
  drop c r p s t q k
  o = core q2 k2 v
  return linear.o o -> h
rope_by x tables
  _a = multiply_by x tables
  _r = rotate_half x
  _b = multiply_by _r tables
  return add _a _b
rope_of_its_own x                            # gptj: each tensor gets tables with every number twice
  s = contiguous cos
  c = contiguous cos
  _a = multiply_by x c
  _r = rotate_half x
  _b = multiply_by _r s
  return add _a _b
core_eager_gptj q k v                        # the scores in fp32
  _q = to_float32 q
  _k = to_float32 k
  _q = for_matmul _q
  _k = for_matmul _k
  _w = matmul _q _k -> scores
  w = scale _w
  w = add_small w
  _p = softmax w
  w = to_compute _p
  w = dropout_attention w
  _v = for_matmul v
  o = matmul w _v -> q
  return merge_heads o
attention_gptj x                             # turned before the heads change places with the sequence
  q = linear.q x -> q
  k = linear.k x -> kv
  _v = linear.v x -> kv
  v = value_heads _v
  s = slice k -> rotary_kv
  t = slice k -> unrotated_kv
  r = slice q -> rotary
  p = slice q -> unrotated
  s = rope s
  r = rope r
  k = join s t -> kv
  q = join r p -> q
  q = heads_free q
  k = heads_free k
  o = core q k v
  return linear.o o -> h
layer_parallel x                             # phi, gptj: one norm, both parts side by side
  n = norm x
  o = attention n
  o = dropout_hidden o
  _m = mlp n
  m = dropout_hidden _m
  _s = add o m
  return add _s x
layer_stablelm x
  n = norm x
  o = attention n
  x = add x o
  _n = norm x
  m = mlp _n
  m = dropout_hidden m
  return add x m
layer_stablelm_parallel x
  n = norm x
  o = attention n
  m = mlp n
  m = dropout_hidden m
  _s = add x o
  return add _s m
mlp_nested x                                 # one expression: nothing is named
  _u = linear.up x -> f
  _a = act _u
  return linear.down _a -> h
relu_squared x
  _r = relu x
  return power _r
""")
