"""Decoders that differ from Llama in one part: Apertus' activation, Granite's multipliers, Seed-OSS' dropouts.

Sources: transformers models/{apertus,granite,seed_oss,starcoder2}/modeling_*.py, activations.py (XIELUActivation in Python).
"""

from __future__ import annotations

from peakgate.memory.blocks import parse

BLOCKS = parse("""
xielu x                                      # two trained numbers; both branches are computed everywhere
  _m = positive x
  _a = weight x -> f
  _a = multiply _a x
  _b = scale x
  _p = add _a _b
  _c = minimum x
  _c = expm1 _c
  _c = subtract _c x
  _c = weight _c -> f
  _d = scale x
  _n = add _c _d
  return where _m _p _n
attention_residual x                         # a dropout behind the output matrix
  _o = attention_llama x
  return dropout_hidden _o
mlp_residual x
  _m = mlp_gated x
  return dropout_hidden _m
layer_granite x                              # each part is multiplied before it is added
  n = norm x
  n = attention n
  _s = scale n
  x = add x _s
  n = norm x
  n = mlp n
  _s = scale n
  return add x _s
head_scaled x
  l = linear.head x -> V
  return scale l
""")
