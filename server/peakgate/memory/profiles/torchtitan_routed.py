"""torchtitan's DeepSeek-V3: latent attention, routed experts, and the exchange of tokens among expert parallel ranks.

Sources: torchtitan models/deepseek_v3/model/model.py, models/moe.py and distributed/expert_parallel.py at f738a03bf, every expression as
it stands there with its local names. Tokens are gathered once for each choice, exchanged (`_A2A` keeps nothing), copied with one row
more, and sorted by local expert into groups padded to a multiple of `routed.ALIGNMENT` rows; all of it again behind the experts.
`MoE.forward` names the gathered tokens to its end, and the call of the experts names the exchanged ones. Routing is counted as
balanced: the framework balances it with a bias of each expert's score (load_balance_coeff).
"""

from __future__ import annotations

from peakgate.memory import blocks, kernels

KERNELS = kernels.parse("""
# the router's product is neither kept nor counted (job_config.py: per_op_sac_force_recompute_mm_shapes_by_fqns = ["moe.router.gate"])
linear_unlisted | y=out          | w(x): gw=w; x(w): gx=x
gather_along(x,i) | y=out        | x(i): gx=x                                 # scatter_add_ into zeros
gather_rows(x,i) | y=out         | x(i): gx=x
order_tokens | v=x y=x -v        |                                            # argsort
append_row   | y=x               | x: gx~gy                                   # vstack with a row of zeros: the gradient is a view
permutation  | y=out:4           |
take_rows(x,i) | j=i:8 y=out:act -j | x(i): gx=x                                 # index: its gradient is put into zeros
put_rows(x,i) | y=out:act        | x(i): gx=x                                 # index_put into an empty tensor
experts_rows | o!=E:4 y=out      | w(x,o): gw=w; x(w,o): gx=x                 # torch._grouped_mm
scatter_rows(x0,x1,i) | y=x0     | x0: gx0~gy; x1(i): gx1=x1                  # scatter_add; the other gradient is gathered
# the kernel's own fp32 accumulator of the queries' gradient, and a row sum (mem_eff_attention/kernel_backward.h: workspace_elements_gq)
efficient_titan(q,k,v) | y=v l!=lse32:4 r!=rng | q,k,v(q,k,v,y,l,r): gq=q gk=k gv=v d=lse32:4 t=q:4 -t -d
""")

BLOCKS = blocks.parse("""
attention_titan_latent x
  q = query x
  n, r = split_query q
  r = rope_complex r -> ropes
  q = join n r -> q
  c = linear.kv_a x -> latent
  c, s = split_latent c
  s = rope_complex s -> rope_head
  _n = norm c
  c = linear.kv_b _n -> kvb
  n, v = split_keys_values c
  _s = repeat_view s -> ropes
  k = join n _s -> q
  output = efficient_titan q k v
  return linear.o output -> h
moe_titan x                                  # TokenChoiceTopKRouter, TokenReorderer, MoE
  _l = linear_unlisted.router x -> E_all
  _f = to_float32 _l
  s = softmax _f
  _c = add_small s
  v, i = top_k _c -> k
  t = gather_along s i -> k
  t = scale t
  drop s v
  p = order_tokens i
  w = pick t p
  p = integers p
  g = gather_rows x p -> h
  o = experts_titan g
  f = to_float32 o
  _w = multiply_rows f w
  drop f
  o = to_compute _w
  y = mlp_shared x
  return scatter_rows y o p
experts_titan x
  e = exchange_tokens x
  j = permutation e -> one
  _v = append_row e
  b = take_rows _v j -> h
  _a = experts_rows.gate b -> f_expert
  m = act _a
  _b = experts_rows.up b -> f_expert
  m = multiply m _b
  o = experts_rows.down m -> h
  drop m
  u = put_rows o j -> h
  drop o j b
  _u = slice u
  drop u
  return exchange_tokens _u
""")

ROWS = {"gather_rows": "routed", "permutation": "aligned", "take_rows": "aligned", "put_rows": "routed"}
"""Operations that change the number of rows: a rank's tokens to those of its choices, and to the padded groups of its experts."""

DEEPSEEK = {
    "layer": "layer_titan",
    "attention": "attention_titan_latent",
    "norm": "rms_norm_fused",
    "mlp": "moe_titan",
    "dense/mlp": "mlp_dense",
    "core": "pass",
}
