"""LitGPT, and the Lit-GPT scripts of 2023 before it: joined queries, keys and values, and adapters on parts of them.

Sources: litgpt model.py, lora.py, rmsnorm.py, finetune/lora.py at 5895df10 (LitGPT) and 6178c7cc (Lit-GPT);
lightning fabric/plugins/precision/bitsandbytes.py: weights are quantised from fp16, the head too.
"""

from __future__ import annotations

from dataclasses import replace

from peakgate.memory.blocks import parse
from peakgate.memory.kernels import parse as parse_kernels
from peakgate.memory.profiles.profile import Profile

KERNELS = parse_kernels("""
new_zeros    | y=out                   | x: gx=x                    # no gradient ever arrives
# out of place; the formula of the source reads the source (derivatives.yaml: index_copy)
index_copy(z,x) | y=z i!=adapted:8     | x(x,i): gx=x
conv1d       | y=out                   | w(x): gw=w; x(w): t=x gx=x -t
split_qkv    | q~x k~x v~x             | x: gx=x                    # split_with_sizes: a concatenation
# made whole as fp16, then cast (bitsandbytes functional.py dequantize_4bit: the format it was quantised from)
linear_from_half | d=w:2 e=w:product -d y=out -e | w: gw=w; x: d=w:2 e=w:product -d gx=x -e
linear_from_half_bias | d=w:2 e=w:product -d y=out -e | w: gw=w; x: d=w:2 e=w:product -d gx=x -e; b: gb=b
linear_from_half_nested | a=w:4/64 d=w:2 -a e=w:product -d y=out -e | w: gw=w; x: a=w:4/64 d=w:2 -a e=w:product -d gx=x -e
linear_from_half_nested_bias | a=w:4/64 d=w:2 -a e=w:product -d y=out -e | w: gw=w; x: a=w:4/64 d=w:2 -a e=w:product -d gx=x -e; b: gb=b
""")

BLOCKS = parse("""
rms_norm_litgpt x                            # model.py RMSNorm: cast before the weight
  x = to_float32 x
  _s = multiply x x
  m = mean _s -> groups
  _e = add_small m
  _r = rsqrt _e
  n = multiply_rows x _r
  n = to_compute n
  return weight n -> groups
rms_norm_lit x                               # rmsnorm.py from 2023-10-24: the fp32 copy is kept, the weight multiplies it
  x = to_float32 x
  _s = multiply x x
  m = mean _s -> groups
  _e = add_small m
  _r = rsqrt _e
  n = multiply_rows x _r
  _w = weight n -> groups
  return to_compute _w
rope_litgpt x                                # the tables are fp32
  r = rotate_half x
  _c = multiply_by_promoted x cos
  _s = multiply_by_promoted r cos
  o = add _c _s
  return to_compute o
lora_merged x                                # LoRAQKVLinear.forward with zero_pad: what is adapted is copied into zeros
  p = linear_base x -> out
  _d = lora_dropout x
  a = linear_adapter _d -> ranks
  b = conv1d a -> adapted
  _z = new_zeros b -> out
  _c = contiguous b
  _i = index_copy _z _c
  l = scale _i
  return add p l
lora_merged_all x                            # all three parts: zero_pad returns its input
  p = linear_base x -> out
  _d = lora_dropout x
  a = linear_adapter _d -> ranks
  b = conv1d a -> adapted
  l = scale b
  return add p l
lora_litgpt x                                # LoRALinear.forward
  p = linear_base x -> out
  _d = lora_dropout x
  _a = linear_adapter _d -> rank
  _b = linear_adapter _a -> out
  l = scale _b
  return add p l
attention_litgpt x                           # concatenated even when nothing is left unrotated; keys and values of every head
  qkv = linear_merged.qkv x -> qkv
  q, k, v = split_qkv qkv
  k = repeat_interleave k -> q
  v = repeat_interleave v -> q
  q = ungroup q
  _a = slice q -> rotary
  qr = rope _a
  _b = slice k -> rotary
  kr = rope _b
  _c = slice q -> unrotated
  q = join qr _c -> q
  _d = slice k -> unrotated
  k = join kr _d -> q
  y = core q k v
  return linear.o y -> h
attention_lit_one_group x                    # one key-value head goes to the call as it is
  qkv = linear_merged.qkv x -> qkv
  q, k, v = split_qkv qkv
  _a = slice q -> rotary
  qr = rope _a
  _b = slice k -> kv
  kr = rope _b
  _c = slice q -> unrotated
  q = join qr _c -> q
  _d = slice k -> nothing
  k = join kr _d -> kv
  y = core_math q k v
  return linear.o y -> h
core_math q k v                              # flash and efficient refuse unequal heads (aten transformers/attention.cpp, math)
  qs = scale q
  ks = scale k
  _w = matmul qs ks -> scores
  _p = softmax _w
  return matmul _p v -> q
core_litgpt_capped q k v                     # a cap on the scores: no kernel takes it (model.py scaled_dot_product_attention)
  _w = matmul q k -> scores
  scores = scale _w
  _t = scale scores
  _t = tanh _t
  scores = scale _t
  scores = add_small scores
  scores = softmax_fp32 scores
  return matmul scores v -> q
core_litgpt_half q k v                       # autocast casts inside the call
  _q = to_half q
  _k = to_half k
  _v = to_half v
  _o = flash _q _k _v
  return contiguous _o
mlp_litgpt x
  g = linear.gate x -> f
  u = linear.up x -> f
  _s = act g
  x = multiply _s u
  return linear.down x -> h
layer_litgpt x
  n = norm x
  h = attention n
  x = add x h
  _n = norm x
  _m = mlp _n
  return add x _m
layer_litgpt_parallel x                      # mlp(norm_2(x)) + h + x
  n1 = norm x
  h = attention n1
  n2 = norm x
  _m = mlp n2
  _t = add _m h
  return add _t x
layer_litgpt_shared x                        # the same with one norm
  n = norm x
  h = attention n
  _m = mlp n
  _t = add _m h
  return add _t x
""")

RENAMES = {
    "layer_pre_norm": "layer_litgpt",
    "layer_gpt2": "layer_litgpt",
    "layer_neox": "layer_litgpt_parallel",
    "layer_falcon": "layer_litgpt_parallel",
    "layer_falcon_mqa": "layer_litgpt_shared",
    "rms_norm": "rms_norm_litgpt",
    "rms_norm_gemma": "rms_norm_litgpt",  # add_unit_offset: the product is with (1 + weight), as large as the weight
    "mlp_gated": "mlp_litgpt",
    "rope": "rope_litgpt",
    "attention_llama": "attention_litgpt",
    "attention_neox": "attention_litgpt",
    "attention_falcon": "attention_litgpt",
    "attention_falcon_mqa": "attention_litgpt",
    "core_flash": "core_flash_copy",
    "core_flash_half": "core_litgpt_half",
    "lora": "lora_litgpt",
    "lora_quantised": "lora_litgpt",
    "lora_quantised_autocast": "lora_litgpt",
    "leaf": "pass",
}

_FIRST = ("llama", "mistral", "gpt_neox", "falcon")
"""Blocks that Lit-GPT knew before its scripts became a package (lit_gpt/config.py at 6178c7cc)."""

PROFILE = Profile(
    renames=RENAMES,
    blocks={
        **{name: {} for name in (*_FIRST, "qwen2", "gemma")},
        "gemma2": {"core": "core_litgpt_capped"},
    },
    losses={"full": "litgpt_full", "chunked": "litgpt_chunked"},
    masks_padding=False,
    quantised="linear_from_half",
    whole=frozenset({"router"}),
    optimizers_of_4bit={"adamw": "paged-adamw"},
    adapts_parts=True,
    holds_graph=True,
    adds_up_whole=True,
)

SCRIPTS = replace(
    PROFILE,
    blocks={name: {} for name in _FIRST},
    renames={**RENAMES, "rms_norm": "rms_norm_lit", "attention_falcon_mqa": "attention_lit_one_group"},
    holds_graph=False,
    longest_first=True,
)
"""Lit-GPT: the longest sample is in the first iteration (finetune/lora.py: get_longest_seq_length, longest_seq_ix)."""
