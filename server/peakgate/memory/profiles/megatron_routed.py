"""Megatron-LM's routed layers and multi-head latent attention.

Sources: Megatron-LM core 0.14: megatron/core/transformer/moe/{moe_layer,router,token_dispatcher,experts}.py,
transformer/multi_latent_attention.py, fusions/fused_mla_yarn_rope_apply.py; Transformer Engine 2.11: triton/permutation.py,
module/grouped_linear.py. Nothing of the dispatch is kept for the backward pass, but `MoELayer.forward` names the permuted, the
dispatched and the returned tokens to its end. Routing is counted as balanced.
"""

from __future__ import annotations

from peakgate.memory import kernels
from peakgate.memory.blocks import parse

KERNELS = kernels.parse("""
top_k_groups | y=out i=out:8 g!=x:1  | x(i,g): z=x gx=x -z                    # moe_utils.py: group-limited top-k, a boolean mask is kept
spread(x,i)  | y=out             | x(i): z=x gx=x -z                          # scatter into zeros, one column an expert
aux_loss     | y=four            | x: gx=x
attach(x0,x1) | y~x0             | x0: gx0~gy; x1: gx1=x1                     # MoEAuxLossAutoScaler
permute(x0,x1) | y=out m!=row_map:4 p!=routed:2 | x0(m,p): gx0=x0; x1(m): gx1=x1
unpermute_te | y=out             | x: gx=x
exchange     | y=x               | x: gx=x                                    # all-to-all
sort_chunks  | y=x               | x: gx=x
experts_te   | y=out             | w(x): ; x(w): gx=x                         # TEGroupedLinear
mla_value    | y=out             | x: gx~gy                                   # one fused kernel writes both, and one their joint gradient
mla_key(x0,x1) | y=out           | x0: gx0=x0; x1: gx1=x1
""")

BLOCKS = parse("""
layer_megatron_routed x                      # the norm in front of the router is a module of its own
  _n = attention x
  _n = dropout_hidden _n
  x = add x _n
  n = norm x
  _n = mlp n
  discard.layernorm n
  _n = dropout_hidden _n
  return add x _n
routed_shared n
  s = shared_experts n
  _u = routed n
  return add _u s
shared_experts n
  _c = linear.gate_up n -> f_shared2
  _m = swiglu _c -> f_shared
  return linear.down _m -> h
routing n                                    # TopKRouter: one fp32 softmax for the choice, one for the auxiliary loss
  l = linear.router n -> E_all
  _c = to_float32 l
  _s = softmax _c
  s = to_compute _s
  t, i = top_k_groups s -> k
  p = spread t i -> E_all
  drop s t i
  _d = to_float32 l
  _d = softmax _d
  _a = aux_loss _d -> one
  return attach p _a
routed n                                     # MoELayer.forward
  p = routing n
  d = permute n p -> h
  e = exchange_tokens d
  drop p
  _r = sort_tokens_te e
  _c = experts_te.up _r -> f_expert2
  _o = expert_tail _c
  o = sort_tokens_te _o
  _t = exchange_tokens o
  return unpermute_te _t -> h
expert_tail_kept c
  _m = swiglu c -> f_expert
  return experts_te.down _m -> h
mlp_megatron_dense x                         # the first layers of a routed model
  _n = norm x
  _c = linear.gate_up _n -> f_dense2
  _m = swiglu _c -> f_dense
  return linear.down _m -> h
attention_latent x                           # MLASelfAttention: the query is rotated in place
  n = norm x
  m = latent_query_input n
  q = linear.q m -> latent_q
  c = linear.kv_down n -> kv_rank_rope
  _k = copied c -> kv_rank
  l = norm _k
  u = linear.k l -> latent_kv
  v = mla_value u -> latent_v
  k = mla_key u c -> latent_q
  drop c u
  o = core q k v
  discard.mla_up_proj q k v l
  m = discard_query m
  y = linear.o o -> h
  discard.layernorm n
  return pass y
latent_query_low n
  _d = linear.q_down n -> q_rank
  return norm _d
discard_low m
  discard.mla_up_proj m
  return pass m
core_latent q k v
  return attention_te q k v -> latent_v
core_latent_unfused q k v
  _w = scores_te q k -> scores
  _p = softmax_te _w
  _d = dropout_attention _p
  _o = matmul _d v -> latent_v
  return copied _o -> latent_v
""")

ROUTED = {"layer": "layer_megatron_routed", "mlp": "routed", "expert_tail": "expert_tail_kept"}
DEEPSEEK = ROUTED | {
    "dense/layer": "layer_megatron",
    "attention": "attention_latent",
    "core": "core_latent",
    "eager/core": "core_latent_unfused",
    "mlp": "routed_shared",
    "dense/mlp": "mlp_whole",
    "feed_forward": "mlp_megatron_dense",
}

ROWS = {"permute": "routed", "unpermute_te": "Ts"}
"""Operations that change the number of rows: a rank's tokens to the ones that its experts get, and back."""
