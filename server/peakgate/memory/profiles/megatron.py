"""Megatron-LM with Transformer Engine: fused norms, linear layers that gather and scatter along the sequence, fused attention.

Sources: Megatron-LM core 0.14 (megatron/core, below M) and Transformer Engine 2.11 (transformer_engine/pytorch, below T).
A layer's norm and the product behind it are one module (T/module/layernorm_linear.py); its input and the norm's output are kept
as they are before the gather. What lives all step long is in `megatron_resident.py`, routed layers in `megatron_routed.py`.
"""

from __future__ import annotations

from peakgate.memory import kernels
from peakgate.memory.blocks import parse
from peakgate.memory.profiles import megatron_bert, megatron_fp8, megatron_routed, megatron_t5
from peakgate.memory.profiles.megatron_resident import resident
from peakgate.memory.profiles.profile import Profile

KERNELS = (
    kernels.parse("""
# ---- linear layers: weight gradients are added to the main gradients inside the product (T/module/linear.py, layernorm_linear.py)
linear_te    | y=out             | w(x): ; x(w): gx=x
linear_bias_te | y=out           | w(x): ; x(w): gx=x; b: gb=b
linear_gathered_te | g=x*tensor y=out -g | w(x): g=x*tensor; x(w): f=x*tensor gx=x -f
linear_bias_gathered_te | g=x*tensor y=out -g | w(x): g=x*tensor; x(w): f=x*tensor gx=x -f; b: gb=b
linear_scattered_te | f=out*tensor y=out -f | w(x): g=gy*tensor; x(w): gx=x
linear_bias_scattered_te | f=out*tensor y=out -f | w(x): g=gy*tensor; x(w): gx=x; b: gb=b
linear_buffered | y=out          | w(x): ; x(w): f=x*tensor gx=x -f   # M/tensor_parallel/layers.py: the output layer's own buffer
# ---- attention and activations
rope_te      | y=out             | x: gx=gy                                   # T/attention/rope.py: only the table is kept
copied       | y=out             | x: gx~gy
attention_te(q,k,v) | y=out l!=lse:4 | q,k,v(q,k,v,y,l): gq=q gk=k gv=v       # cuDNN: the softmax statistics in fp32
scores_te(x0,x1) | m=out y=out -m | x0(x1): gx0=x0; x1(x0): gx1=x1            # torch.baddbmm into an empty matrix
softmax_te   | y=x               | x(y): gx~gy                                # M/fusions/fused_softmax.py: backward in place
swiglu       | y=out             | x(x): gx=x                                 # M/fusions/fused_bias_swiglu.py
squared_relu | y=x               | x(x): gx=x                                 # M/activations.py, one compiled function
# ---- loss: the kept logits become their own gradient (T/cross_entropy.py; M/tensor_parallel/cross_entropy.py)
cross_entropy_in_place | y=out:4 l=out:12 -l | x(x): gx~x
""")
    | megatron_routed.KERNELS
    | megatron_t5.KERNELS
    | megatron_fp8.KERNELS
)

BLOCKS = (
    parse("""
layer_megatron x                             # M/transformer/transformer_layer.py: the norms are part of the linear layers
  _n = attention x
  _n = dropout_hidden _n
  x = add x _n
  _n = mlp x
  _n = dropout_hidden _n
  return add x _n
attention_megatron x                         # M/transformer/attention.py: with rotary positions v is copied, and the joined tensor goes
  _n = norm x
  _c = linear.qkv _n -> qkv
  q, k, v = split3 _c
  _q = query_groups q -> q
  q = rope_te _q -> q
  k = rope_te k -> kv
  v = copied v -> kv
  o = core q k v
  return linear.o o -> h
attention_megatron_normed x                  # with a norm of each head of q and k
  _n = norm x
  _c = linear.qkv _n -> qkv
  q, k, v = split3 _c
  _q = query_groups q -> q
  _q = norm _q -> a
  q = rope_te _q -> q
  _k = view k -> kv
  _k = norm _k -> n
  k = rope_te _k -> kv
  v = copied v -> kv
  o = core q k v
  return linear.o o -> h
attention_megatron_plain x                   # without: q, k and v stay views of one tensor, unless other ranks' keys need a plain one
  _n = norm x
  _c = linear.qkv _n -> qkv
  q, k, v = split3 _c
  _q = query_groups q -> q
  q = separate _q -> q
  k = separate k -> kv
  v = separate v -> kv
  o = core q k v
  return linear.o o -> h
core_te q k v
  return attention_te q k v -> q
core_unfused q k v                           # T/attention/dot_product_attention/backends.py: UnfusedDotProductAttention
  _k = repeat_interleave k -> q
  _w = scores_te q _k -> scores
  _p = softmax_te _w
  _d = dropout_attention _p
  _v = repeat_interleave v -> q
  _o = matmul _d _v -> q
  return copied _o -> q
mlp_whole x
  return feed_forward x
mlp_megatron x
  _n = norm x
  _c = linear.gate_up _n -> f2
  _m = swiglu _c -> f
  return linear.down _m -> h
mlp_megatron_plain x
  _n = norm x
  _u = linear.up _n -> f
  _a = act _u
  return linear.down _a -> h
further_token e x                            # M/transformer/multi_token_prediction.py: _concat_embeddings
  _e = norm e
  _h = norm x
  _c = join _e _h -> h2
  return linear.further _c -> h
embed_megatron x                             # M/models/common/embeddings/language_model_embedding.py
  _e = embedding.V x -> h
  return dropout_hidden _e
embed_megatron_positions x
  e = embedding.V x -> h
  p = embedding.positions positions -> h
  _x = add_broadcast e p
  return dropout_hidden _x
""")
    | megatron_routed.BLOCKS
    | megatron_t5.BLOCKS
    | megatron_bert.BLOCKS
)


_TE = {"layer": "layer_megatron", "core": "core_te", "eager/core": "core_unfused", "embed": "embed_megatron", "norm": "rms_norm_fused"}
LLAMA = _TE | {"attention": "attention_megatron", "mlp": "mlp_whole", "feed_forward": "mlp_megatron"}
QWEN3 = LLAMA | {"attention": "attention_megatron_normed"}
GPT = _TE | {
    "norm": "layer_norm",
    "attention": "attention_megatron_plain",
    "mlp": "mlp_whole",
    "feed_forward": "mlp_megatron_plain",
    "act": "gelu",
    "embed": "embed_megatron_positions",
}
NEMOTRON = LLAMA | {"norm": "layer_norm", "feed_forward": "mlp_megatron_plain", "act": "squared_relu"}

ROLES = {
    **dict.fromkeys(("llama", "mistral", "qwen2", "smollm3", "seed_oss"), LLAMA),
    **dict.fromkeys(("gpt", "gpt2", "gpt3"), GPT),
    "qwen3": QWEN3,
    "nemotron": NEMOTRON,
    "t5": GPT | megatron_t5.T5,
    "bert": GPT | megatron_bert.BERT,
    "mixtral": LLAMA | megatron_routed.ROUTED,
    "qwen3_moe": QWEN3 | megatron_routed.ROUTED,
    **dict.fromkeys(("deepseek_v2", "deepseek_v3"), LLAMA | megatron_routed.DEEPSEEK),
}
"""Blocks that Megatron-LM builds of its own modules (M/models/gpt/gpt_layer_specs.py)."""

PROFILE = Profile(
    roles=ROLES,
    rows=megatron_routed.ROWS,
    recomputed={"core_attn": ("core",), "mlp": ("feed_forward",), "moe_act": ("expert_tail",)},
    linears={name: name + "_te" for name in megatron_fp8.VARIANTS} | {"linear_gathered.head": "linear_buffered"},
    linears_of=megatron_fp8.linears,
    workspaces=0,
    tables=False,
    resident=resident,
    built={"t5": megatron_t5.as_built, "bert": megatron_bert.as_built},
    further_tokens=frozenset({"embed_megatron"}),
    pipeline_loop=True,
    zero_buckets=False,
    flat_buffers=True,
    vocabulary_multiple=128,
    fused=frozenset({"rms_norm", "layer_norm", "swiglu", "rope"}),
)
