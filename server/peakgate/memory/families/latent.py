"""DeepSeek V2 and V3: attention through latents of low rank, a router in fp32, experts that every token visits.

Sources: transformers models/{deepseek_v2,deepseek_v3}/modeling_*.py (`expand_kv` writes the two parts of the keys into an empty tensor);
integrations/flash_attention.py (values are padded to the width of the keys).
Dimensions: qr and latent the ranks of queries and of keys with their turned part, ropes the turned part of all query heads, rope_head
that of the one key head, values the width of all value heads, f a routed expert's inner width, fs the shared ones', fd a dense layer's.
"""

from __future__ import annotations

from peakgate.memory.blocks import parse

BLOCKS = parse("""
query_latent x
  _a = linear.q_a x -> qr
  _n = norm _a
  return linear.q_b _n -> q
query_whole x                                # V2-Lite: no rank for queries
  return linear.q x -> q
attention_mla x
  _q = query x
  q = heads _q
  p, r = split_query q
  c = linear.kv_a x -> latent
  n, s = split_latent c
  n = norm n
  r = rope r -> ropes
  s = rope s -> rope_head
  q = join p r -> q
  _b = linear.kv_b n -> kvb
  b = heads _b
  _n, v = split_keys_values b
  _s = repeat_view s -> ropes
  _k = first_part _n -> q
  k = second_part _k _s -> q
  drop b n
  o = core q k v
  return linear.o o -> h
rope_neighbours x                                 # V3: neighbours turned together, on halves of the width
  a, b = pairs x
  _c = multiply_by a cos
  _s = multiply_by b cos
  u = subtract _c _s
  _c = multiply_by b cos
  _s = multiply_by a cos
  _w = add _c _s
  return join u _w -> out
rope_complex x                               # V2: complex numbers, in fp32
  f = to_float32 x
  _m = multiply_by f cos
  return to_compute _m
core_eager_latent q k v                      # every head has its own keys; values have a width of their own
  _q = for_matmul q
  _k = for_matmul k
  _w = matmul _q _k -> scores
  w = scale _w
  w = add_small w
  w = softmax_up w
  w = dropout_attention w
  _v = for_matmul v
  o = matmul w _v -> values
  return merge_heads o
core_efficient_latent q k v                  # values narrower than keys: the flash kernel refuses them (aten cuda/sdp_utils.cpp)
  return efficient_latent q k v
core_efficient_latent_half q k v
  _q = to_half q
  _k = to_half k
  _v = to_half v
  return efficient_latent _q _k _v
core_efficient_latent_masked q k v
  _m = bias_of_mask mask
  return efficient_latent_masked q k v _m
core_efficient_latent_masked_half q k v
  _q = to_half q
  _k = to_half k
  _v = to_half v
  _m = bias_of_mask_half mask
  return efficient_latent_masked _q _k _v _m
core_flash_padded q k v
  v = pad v -> q
  _o = core_flash q k v
  _o = slice _o -> values
  return contiguous _o
moe_grouped x                                # V3: sigmoid scores; the choice itself carries no gradient
  _f = to_float32 x
  l = linear_up.router _f -> E
  s = sigmoid l
  i = choose s -> k
  t = gather s i -> k
  drop s
  t = normalise_top_k t
  t = scale t
  y = experts x i t
  _s = mlp_shared x
  return add y _s
moe_limited x                                # V2: softmax; of the groups only the best are looked at
  _f = to_float32 x
  l = linear_up.router _f -> E
  _p = softmax l
  _p = limit_groups _p
  t, i = top_k _p -> k
  t = scale t
  y = experts x i t
  _s = mlp_shared x
  return add y _s
mlp_dense x
  return mlp_gated_wide x -> fd
mlp_shared x
  return mlp_gated_wide x -> fs
mlp_gated_wide x
  _g = linear.gate x -> out
  _s = act _g
  _u = linear.up x -> out
  _m = multiply _s _u
  return linear.down _m -> h
""")
