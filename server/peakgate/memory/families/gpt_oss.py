"""GPT-OSS: sinks beside the scores, biases on every matrix, experts with a clamped gate.

Sources: transformers models/gpt_oss/modeling_gpt_oss.py (eager_attention_forward, GptOssExperts._apply_gate), integrations/moe.py
(grouped_mm_experts_forward with `has_bias`).
"""

from __future__ import annotations

from peakgate.memory.blocks import parse

BLOCKS = parse("""
rope_halves x
  a, b = halves x
  _c = multiply_by a cos
  _s = multiply_by b cos
  u = subtract _c _s
  _c = multiply_by b cos
  _s = multiply_by a cos
  w = add _c _s
  return join u w -> out
core_eager_sinks q k v
  k = repeat_heads k -> q
  v = repeat_heads v -> q
  _q = for_matmul q
  _k = for_matmul k
  _w = matmul _q _k -> scores
  w = scale _w
  w = add_small w
  c = join_sinks w -> scores_and_sink
  c = minus_maximum c
  p = softmax c
  _p = slice p -> scores
  w = dropout_attention _p
  _v = for_matmul v
  o = matmul w _v -> q
  return merge_heads o
core_flash_sinks q k v
  return flash_sinks q k v -> d
moe_biased x
  l = linear.router x -> E
  t, i = top_k l -> k
  t = softmax t
  return experts_biased x i t
experts_biased x i t
  e, p = sort_tokens i
  _j = integers p
  _g = gather x _j -> kh
  w = pick t p
  _c = counts e
  b = expert_bias.up e -> kf2
  c = experts_mm.up _g -> kf2
  c = add_in_place c b
  c = clamped_gate c
  b = expert_bias.down e -> kh
  c = experts_mm.down c -> kh
  c = add_in_place c b
  _y = weigh_experts c w
  v = integers p
  r = unpermute _y v
  return sum_k r -> h
clamped_gate x
  a, u = pairs x
  a = clamp_above a
  u = clamp_both u
  _s = scale a
  _s = sigmoid _s
  g = multiply a _s
  _u = add_small u
  return multiply _u g
""")
