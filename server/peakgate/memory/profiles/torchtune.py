"""torchtune: eager modules of its own, and what torch.compile makes of a layer.

Sources: torchtune modules/{rms_norm,position_embeddings,attention,feed_forward,transformer}.py, modules/peft/lora.py;
torchao dtypes/nf4tensor.py (linear_nf4 keeps the weight only; scales always quantised);
torch/_functorch/partitioners.py (the min-cut keeps what products and attention read and rebuilds point-wise chains).
"""

from __future__ import annotations

from peakgate.memory.blocks import parse
from peakgate.memory.kernels import parse as parse_kernels
from peakgate.memory.profiles.profile import Profile

KERNELS = parse_kernels("""
# rotary pairs in fp32 times rows of a table; indexed by position they are a copy of this call, kept
rope_pairs   | t=x/2 y=x -t                 | x: t=x/2 gx=x -t
rope_pairs_indexed | c!=rope_rows:4 t=x/2 y=x -t | x(c): t=x/2 gx=x -t
rope_compiled | y=x                         | x: gx=x
# torchao nf4tensor.py get_original_weight: two int64 tensors of indices, their values, the scales, both halves scaled, the weight
linear_nf4_nested | i=w:8 v=w:2 s=w:2/64 h=w:2 t=w:2 -i -v -s -h y=out -t | w: gw=w; x: i=w:8 v=w:2 s=w:2/64 h=w:2 t=w:2 -i -v -s -h gx=x -t
linear_nf4_nested_bias | i=w:8 v=w:2 s=w:2/64 h=w:2 t=w:2 -i -v -s -h n=out -t y=out -n \
 | w: gw=w; x: i=w:8 v=w:2 s=w:2/64 h=w:2 t=w:2 -i -v -s -h gx=x -t; b: gb=b
# compiled: one kernel makes the weight
linear_nf4_compiled_nested | t=w:2 y=out -t | w: gw=w; x: t=w:2 gx=x -t
linear_nf4_compiled_nested_bias | t=w:2 n=out -t y=out -n | w: gw=w; x: t=w:2 gx=x -t; b: gb=b
# compute_cross_entropy compiled: the up-cast is inside, the gradient leaves in the format of the logits
cross_entropy_compiled(x,t) | y=four s!=rows:4 | x(x,t,s): gx=x
""")

BLOCKS = parse("""
rms_norm_torchtune x                         # cast before the weight
  f = to_float32 x
  _p = power f
  _m = mean _p -> groups
  _e = add_small _m
  _r = rsqrt _e
  _n = multiply_rows f _r
  n = to_compute _n
  return weight n -> groups
rope_torchtune x
  s = to_float32 x
  o = positions_rope s
  return to_compute o
attention_torchtune x                        # keys and values are expanded to every head before the call
  _q = linear.q x -> q
  q = rope _q
  _k = linear.k x -> kv
  v = linear.v x -> kv
  k = rope _k
  k = repeat_interleave k -> q
  v = repeat_interleave v -> q
  o = core q k v
  return linear.o o -> h
mlp_torchtune x
  _a = linear.gate x -> f
  h = act _a
  _u = linear.up x -> f
  h = multiply h _u
  h = linear.down h -> h
  return pass h
layer_torchtune x
  h = norm x
  a = attention h
  h = add a x
  _n = norm h
  m = mlp _n
  return add h m
""")

RENAMES = {
    "layer_pre_norm": "layer_torchtune",
    "rms_norm": "rms_norm_torchtune",
    "attention_llama": "attention_torchtune",
    "mlp_gated": "mlp_torchtune",
    "rope": "rope_torchtune",
    "leaf": "pass",
    "lora_quantised": "lora",
}

COMPILED = {
    "rms_norm_torchtune": "rms_norm_fused",
    "rope_torchtune": "rope_compiled",
    "mlp_torchtune": "mlp_gated_fused",
    "linear_nf4": "linear_nf4_compiled",
}

PROFILE = Profile(
    renames=RENAMES,
    blocks={name: {} for name in ("llama", "mistral", "qwen2")},
    compiled=COMPILED,
    losses={"full": "torchtune_full", "chunked": "torchtune_chunked"},
    masks_padding=False,
    double_quant=True,
    quantised="linear_nf4",
)
