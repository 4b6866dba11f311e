"""GPT-2, OPT, GPT-NeoX: LayerNorm, a plain feed-forward part.

Sources: transformers models/{gpt2,opt,gpt_neox}/modeling_*.py.
"""

from __future__ import annotations

from peakgate.memory.blocks import parse

BLOCKS = parse("""
attention_gpt2 x
  _c = linear.qkv x -> qkv
  q, k, v = split3 _c
  q = heads_q q
  k = heads_k k
  v = value_heads v
  o = core q k v
  o = linear.o o -> h
  return dropout_hidden o
attention_opt x
  _q = linear.q x -> q
  _q = scale _q
  q = heads _q
  _k = linear.k x -> kv
  k = heads _k
  _v = linear.v x -> kv
  v = value_heads _v
  o = core q k v
  return linear.o o -> h
attention_neox x
  _c = linear.qkv x -> qkv
  c = heads _c
  q, k, v = split3 c
  drop c
  r = rope_partial q
  k2 = rope_partial k
  drop q k
  o = core r k2 v
  return linear.o o -> h
rope_partial x                               # neox: only the first rotary_dim of each head
  _r = slice x -> rotary
  p = slice x -> unrotated
  _e = rope _r
  return join _e p -> q
layer_gpt2 x
  n = norm x
  o = attention n
  x = add o x
  n = norm x
  m = mlp n
  return add x m
layer_opt x
  n = norm x
  n = attention n
  n = dropout_hidden n
  x = add x n
  n = norm x
  n = mlp n
  return add x n
layer_neox x                                 # parallel residual
  _n = norm x
  o = attention _n
  o = dropout_hidden o
  _n = norm x
  m = mlp _n
  _s = add m o
  return add _s x
embed_opt x
  _e = embedding.V x -> h
  e = require_grad _e
  p = embedding.positions positions -> h
  return add e p
""")
