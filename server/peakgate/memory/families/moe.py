"""Mixture of experts: Mixtral, Qwen3-MoE, OLMoE; with a gated shared expert Qwen2-MoE.

Sources: transformers models/{mixtral,qwen3_moe,olmoe,qwen2_moe}/modeling_*.py, integrations/moe.py.
"""

from __future__ import annotations

from peakgate.memory.blocks import parse

BLOCKS = parse("""
moe x                                        # mixtral: fp32 router
  l = linear.router x -> E
  _f = to_float32 l
  _p = softmax _f
  t, i = top_k _p -> k
  t = normalise_top_k t
  t = router_cast t
  return experts x i t
experts x i t                                # integrations/moe.py: grouped_mm_experts_forward
  s, p = sort_tokens i
  _j = integers p
  _g = gather x _j -> kh
  w = pick t p
  _c = counts s
  c = experts_mm.up _g -> kf2
  a, u = halves c
  drop c
  _s = act a
  _m = multiply _s u
  _o = experts_mm.down _m -> kh
  _y = weigh_experts _o w
  v = integers p
  r = unpermute _y v
  r = sum_k r -> h
  return to_compute r
moe_gated x                                  # qwen2_moe: the shared expert first, through a gate of one number a token
  s = mlp_shared x
  l = linear.router x -> E
  _f = to_float32 l
  _p = softmax _f
  t, i = top_k _p -> k
  t = normalise_top_k t
  t = router_cast t
  y = experts x i t
  _g = linear.shared_gate x -> one
  _g = sigmoid _g
  s = multiply_rows s _g
  return add y s
""")
