"""Llama and its relatives: RMSNorm, rotary positions, a gated feed-forward part, grouped queries.

Sources: transformers models/{llama,mistral,qwen2,qwen3,olmo2,phi3}/modeling_*.py.
"""

from __future__ import annotations

from peakgate.memory.blocks import parse

BLOCKS = parse("""
attention_llama x
  _q = linear.q x -> q
  q = heads _q
  _k = linear.k x -> kv
  k = heads _k
  _v = linear.v x -> kv
  v = value_heads _v
  r = rope q -> q
  k2 = rope k -> kv
  drop q k
  o = core r k2 v
  return linear.o o -> h
attention_qwen3 x
  _q = linear.q x -> q
  _q2 = norm _q -> a
  q = heads _q2
  _k = linear.k x -> kv
  _k2 = norm _k -> n
  k = heads _k2
  _v = linear.v x -> kv
  v = value_heads _v
  r = rope q
  k2 = rope k
  drop q k
  o = core r k2 v
  return linear.o o -> h
rms_norm_olmo x                              # weight * x in fp32, cast last
  x = to_float32 x
  _p = power x
  v = mean _p -> groups
  _e = add_small v
  _r = rsqrt _e
  x = multiply_rows x _r
  _w = weight x -> groups
  return to_compute _w
attention_olmo2 x                            # norms over the whole width
  _q = linear.q x -> q
  q = norm _q
  _k = linear.k x -> kv
  k = norm _k
  _v = linear.v x -> kv
  q = heads q
  k = heads k
  v = value_heads _v
  r = rope q
  k2 = rope k
  drop q k
  o = core r k2 v
  return linear.o o -> h
layer_post_norm x                            # olmo2
  n = attention x
  n = norm n
  x = add x n
  n = mlp x
  n = norm n
  return add x n
rope_joined x                                # phi3: the same code with nothing left unrotated
  p = slice x -> unrotated
  _e = rope x
  return join _e p -> out
attention_phi3 x
  c = linear.qkv x -> qkv
  q = slice c -> q
  k = slice c -> kv
  v = slice c -> kv
  q = heads q
  k = heads k
  v = value_heads v
  r = rope_joined q -> q
  k2 = rope_joined k -> kv
  drop q k
  o = core r k2 v
  return linear.o o -> h
mlp_fused x                                  # phi3: gate and up in one matrix
  c = linear.gate_up x -> f2
  g, u = halves c
  _s = act g
  c = multiply u _s
  return linear.down c -> h
layer_phi3 x
  n = norm x
  n = attention n
  _n = dropout_hidden n
  x = add x _n
  n = norm x
  n = mlp n
  _n = dropout_hidden n
  return add x _n
""")
