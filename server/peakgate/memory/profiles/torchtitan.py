"""torchtitan: its own Llama, per-operation checkpointing, compiled layers, FSDP2.

Sources: torchtitan models/llama3/model/model.py (every expression as it stands there, with its local names), models/norms.py,
models/llama3/infra/parallelize.py, components/loss.py. Three ages: before 0.1 the norms are Python code and the loss is never compiled; 0.1
has torch.nn.RMSNorm while ATen composed it of operations (aten layer_norm.cpp: rms_norm), and compiles the loss with the layers; since
commit 83e6941 (0.2) embedding and head are units of their own, no layer stays gathered, and ATen has a fused norm; since e5ef99aab (0.2.1)
a pipeline lets go of its outputs.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from peakgate.memory import blocks, kernels
from peakgate.memory.profiles import torch_pipeline, torchtitan_compiled, torchtitan_routed
from peakgate.memory.profiles.profile import Profile

BLOCKS = torchtitan_routed.BLOCKS | blocks.parse("""
layer_titan x                                # TransformerBlock.forward; PrepareModuleInput gathers a rank's tokens once a module
  n = norm x
  _g = gather_tokens n
  _a = attention _g
  drop n
  h = add x _a
  m = norm h
  _g = gather_tokens m
  _f = mlp _g
  drop m
  return add h _f
mlp_titan x                                  # FeedForward.forward
  _g = linear.gate x -> f
  _s = act _g
  _u = linear.up x -> f
  _m = multiply _s _u
  _d = linear.down _m -> h
  return scatter_tokens _d
head_titan x
  _g = gather_tokens x
  return linear.head _g -> V
layer_compiled x
  return compiled_layer x
attention_titan x                            # apply_rotary_emb: a complex product of fp32 copies; repeat_kv copies keys and values
  xq = linear.q x -> q
  xk = linear.k x -> kv
  xv = linear.v x -> kv
  fq = to_float32 xq
  fk = to_float32 xk
  oq = multiply_by fq cos
  ok = multiply_by fk cos
  xq = to_compute oq
  xk = to_compute ok
  drop fq fk oq ok
  keys = repeat_heads xk -> q
  values = repeat_heads xv -> q
  drop xk xv
  output = flash_cuda xq keys values
  _o = linear.o output -> h
  return scatter_tokens _o
attention_titan_normed x                     # models/qwen3/model/model.py: norms of heads, positions turned in halves
  xq = linear.q x -> q
  xk = linear.k x -> kv
  xv = linear.v x -> kv
  xq = norm xq -> a
  xk = norm xk -> n
  oq = rope xq -> q
  ok = rope xk -> kv
  drop xq xk
  keys = repeat_heads ok -> q
  values = repeat_heads xv -> q
  drop ok xv
  output = flash_cuda oq keys values
  _o = linear.o output -> h
  return scatter_tokens _o
rms_norm_titan x                             # models/norms.py: RMSNorm
  f = to_float32 x
  _p = power f
  _m = mean _p -> groups
  _e = add_small _m
  _r = rsqrt _e
  _n = multiply_rows f _r
  drop f
  o = to_compute _n
  return weight o -> groups
rms_norm_native x                            # the weight is multiplied in fp32, the result cast last
  f = to_float32 x
  _p = power f
  _m = mean _p -> groups
  _e = add_small _m
  r = rsqrt _e
  o = multiply_rows f r
  o = weight o -> groups
  return to_compute o
""")

KERNELS = (
    torchtitan_routed.KERNELS
    | torchtitan_compiled.KERNELS
    | kernels.parse("""
# The kernel's own fp32 accumulator of the queries' gradient, and a row sum (flash_attn csrc: dq_accum, softmax_d)
flash_cuda(q,k,v) | y=q l!=lse:4 r!=rng | q,k,v(q,k,v,y,l,r): gq=q gk=k gv=v d=lse:4 t=q:4 -t -d
# DTensor's redistributions of a sequence parallel rank's tokens; the gradient takes the other way
all_gather   | y=out             | x: gx=x
reduce_scatter | y=out           | x: gx=x
# A compiled cross entropy: one kernel each way, no fp32 copy of the logits
loss_compiled(x,t) | m!=rows:4 l!=rows:4 y=four | x(x,t,m,l): gx=x
""")
)

LLAMA = {
    "layer": "layer_titan",
    "attention": "attention_titan",
    "mlp": "mlp_titan",
    "head": "head_titan",
    "norm": "rms_norm_titan",
}

ROWS = {"all_gather": "T", "reduce_scatter": "Ts"}
"""From a rank's share of the tokens to all of them, and back."""

OLDEST = Profile(
    roles={"llama": LLAMA},
    rows=ROWS,
    gathers_inputs=True,
    per_operation=True,
    compiled_layers=torchtitan_compiled.LAYERS,
    newest_capability=9,  # Blackwell needs torch 2.7 of April 2025 (its release notes), and 0.1 is of June 2025
    resident_rope=True,
    resident=torch_pipeline.resident,
    splits_backward=True,
    keeps_last_unit=True,
)

COMPILED_LOSS = {"causal_loss": "loss_compiled", "loss_upcast": "pass"}

FIRST = replace(
    OLDEST, roles={"llama": LLAMA | {"norm": "rms_norm_native"}}, compiled_loss=COMPILED_LOSS, newest_capability=Profile().newest_capability
)

FUSED = LLAMA | {"norm": "rms_norm_fused"}

SECOND = replace(
    FIRST,
    roles={"llama": FUSED, "qwen3": FUSED | {"attention": "attention_titan_normed"}, "deepseek_v3": torchtitan_routed.DEEPSEEK},
    rows=ROWS | torchtitan_routed.ROWS,
    splits_ends=True,
    keeps_last_unit=False,
    compiles_loss_of=frozenset({"deepseek_v3"}),  # models/deepseek_v3/train_configs/*.toml: compile.components = ["loss"]
)

THIRD = replace(SECOND, resident=partial(torch_pipeline.resident, keeps_outputs=False))
