"""Encoder-decoders: T5 (a bias of relative positions on the scores), BART (norms after each part), Whisper (frames of sound).

The encoder's output is named `encoded`: every decoder layer's second attention reads keys and values from it.
Sources: transformers models/{t5,bart,whisper}/modeling_*.py and configuration_*.py, integrations/sdpa_attention.py
(create_position_bias_mask).
"""

from __future__ import annotations

from collections.abc import Mapping

from peakgate.memory.architecture import Family, Roles
from peakgate.memory.blocks import parse
from peakgate.memory.families.encoder import BIASED, ENCODER, PLAIN

BLOCKS = parse("""
core_eager_cross q k v                       # as wide as the encoder's sequence; nobody is masked
  _q = for_matmul q
  _k = for_matmul k
  _w = matmul _q _k -> scores_cross
  w = scale _w
  w = mask_cross w
  w = softmax_up w
  w = dropout_attention w
  _v = for_matmul v
  _p = product_cast w
  o = matmul _p _v -> q
  return merge_heads o
attention_cross x
  _q = linear.q x -> q
  q = heads_q _q
  _k = linear.k encoded -> kv
  k = heads_k _k
  _v = linear.v encoded -> kv
  v = value_heads _v
  o = cross_core q k v
  return linear.o o -> h
rms_norm_t5 x                                # the row times an fp32 number, then cast, then the weight
  _f = to_float32 x
  _p = power _f
  v = mean _p -> groups
  _e = add_small v
  _r = rsqrt _e
  x = multiply_rows x _r
  _n = to_compute x
  return weight _n -> groups
core_eager_bias q k v
  _q = for_matmul q
  _k = for_matmul k
  _w = matmul _q _k -> scores
  w = scale _w
  w = add_broadcast w bias
  w = mask_scores w
  w = softmax_up w
  w = dropout_attention w
  _v = for_matmul v
  _p = product_cast w
  o = matmul _p _v -> q
  return merge_heads o
core_eager_bias_cross q k v
  _q = for_matmul q
  _k = for_matmul k
  _w = matmul _q _k -> scores_cross
  w = scale _w
  w = add_broadcast w cross_bias
  w = mask_cross w
  w = softmax_up w
  w = dropout_attention w
  _v = for_matmul v
  _p = product_cast w
  o = matmul _p _v -> q
  return merge_heads o
core_bias q k v                              # the bias in the layout that the kernel takes, for each layer anew
  _b = contiguous bias
  _b = bias_cast _b
  _e = expand_batch _b
  return efficient_biased q k v _e
core_bias_causal q k v
  _b = where_causal bias
  _b = contiguous _b
  _b = bias_cast _b
  _e = expand_batch _b
  return efficient_biased q k v _e
core_bias_padded q k v                       # a padding mask makes the bias one a sequence
  _b = where_padded.masked bias mask -> a
  _b = contiguous _b
  _b = bias_cast _b
  return efficient_masked q k v _b
core_bias_cross_padded q k v
  _b = where_padded.cross_masked cross_bias cross_mask -> a
  _b = bias_cast _b
  return efficient_masked q k v _b
core_efficient_cross q k v
  _m = bias_of_mask cross_mask
  return efficient q k v _m
core_efficient_half_cross q k v
  _m = bias_of_mask_half cross_mask
  return efficient q k v _m
core_bias_cross q k v                        # zeros, made once
  _b = bias_cast cross_bias
  _e = expand_batch _b
  return efficient_biased q k v _e
self_t5 x
  n = norm x
  o = attention n
  _d = dropout_hidden o
  return add x _d
cross_t5 x
  n = norm x
  o = attention_cross n
  _d = dropout_hidden o
  return add x _d
feed_t5 x
  n = norm x
  n = mlp n
  _d = dropout_hidden n
  return add x _d
layer_t5_encoder x
  x = self_t5 x
  return feed_t5 x
layer_t5_decoder x
  x = self_t5 x
  x = cross_t5 x
  return feed_t5 x
mlp_t5_gated x
  _g = linear.gate x -> f
  g = act _g
  u = linear.up x -> f
  x = multiply g u
  x = dropout_activation x
  return linear.down x -> h
embed_t5 x
  e = embedding.V x -> h
  e = require_grad e
  bias = embedding.buckets relative -> a
  return dropout_hidden e
embed_t5_decoder x
  e = embedding.V x -> h
  bias = embedding.buckets relative -> a
  _z = zeros.cross x -> a
  cross_bias = cross_leaf _z
  return dropout_hidden e
final_t5 x
  n = norm x
  return dropout_hidden n
head_t5 x                                    # config.scale_decoder_outputs: of tied embeddings
  _s = scale x
  return linear.head _s -> V
layer_bart_encoder x
  n = attention x
  n = dropout_hidden n
  n = add x n
  n = norm n
  m = mlp n
  m = add n m
  return norm m
layer_bart_decoder x
  n = attention x
  n = dropout_hidden n
  n = add x n
  n = norm n
  c = attention_cross n
  c = dropout_hidden c
  c = add n c
  c = norm c
  m = mlp c
  m = add c m
  return norm m
embed_bart x                                 # BartScaledWordEmbedding multiplies, by one or by the root of h
  _e = embedding.V x -> h
  e = require_grad _e
  e = scale e
  p = embedding.positions positions -> h
  _s = add_positions e p
  _n = norm.embedding _s
  return dropout_hidden _n
head_bart x                                  # the logits plus a bias that is a buffer
  _l = linear.head x -> V
  return add_small _l
attention_whisper x                          # WhisperAttention: heads are made contiguous, whatever the kernel
  _q = linear.q x -> q
  _q = scale _q
  _q = heads _q
  q = contiguous _q
  _k = linear.k x -> kv
  _k = heads _k
  k = contiguous _k
  _v = linear.v x -> kv
  _v = heads _v
  v = contiguous _v
  o = core q k v
  return linear.o o -> h
attention_whisper_cross x
  _q = linear.q x -> q
  _q = scale _q
  _q = heads _q
  q = contiguous _q
  _k = linear.k encoded -> kv
  _k = heads _k
  k = contiguous _k
  _v = linear.v encoded -> kv
  _v = heads _v
  v = contiguous _v
  o = cross_core q k v
  return linear.o o -> h
layer_whisper_decoder x
  n = norm x
  n = attention n
  n = dropout_hidden n
  n = add x n
  c = norm n
  c = attention_cross c
  c = dropout_hidden c
  c = add n c
  m = norm c
  m = mlp m
  return add c m
embed_whisper x                              # two convolutions over the frames, the second with a stride of two
  _c = convolve.conv1 x -> h
  _g = gelu _c
  _c = convolve.conv2 _g -> h
  e = gelu _c
  _p = embedding.sources positions -> h
  _s = add_broadcast e _p
  return dropout_hidden _s
embed_whisper_decoder x
  e = embedding.V x -> h
  p = embedding.positions positions -> h
  _s = add e p
  return dropout_hidden _s
""")

T5 = ENCODER | {
    "layer": "layer_t5_encoder",
    "norm": "rms_norm_t5",
    "act": "relu",
    "softmax_up": "softmax",
    "dropout_activation": "dropout_hidden",
    "dropout_mlp": "pass",
    "eager/core": "core_eager_bias",
    "sdpa/core": "core_bias",
    "sdpa/value_heads": "view",
    "embed": "embed_t5",
    "final": "final_t5",
    "head": "head_t5",
}
T5_DECODER = {
    "layer": "layer_t5_decoder",
    "embed": "embed_t5_decoder",
    "mask_scores": "add_small",
    "sdpa/core": "core_bias_causal",
    "eager/cross_core": "core_eager_bias_cross",
    "sdpa/cross_core": "core_bias_cross",
}
T5_GATED = {"mlp": "mlp_t5_gated", "act": "gelu_new"}
"""`feed_forward_proj: gated-gelu` (T5 1.1, mT5)."""

BART = ENCODER | {
    "layer": "layer_bart_encoder",
    "softmax_up": "softmax",
    "embed": "embed_bart",
    "add_positions": "add",
    "final": "pass",
    "head": "head_bart",
}
BART_DECODER = {
    "layer": "layer_bart_decoder",
    "add_positions": "add_broadcast",
    "mask_scores": "add_small",
    "eager/cross_core": "core_eager_cross",
    "sdpa/cross_core": "core_flash",
}
WHISPER = ENCODER | {
    "layer": "layer_residual",
    "attention": "attention_whisper",
    "attention_cross": "attention_whisper_cross",
    "softmax_up": "softmax",
    "sdpa/core": "core_flash_copy",
    "embed": "embed_whisper",
    "head": "head_linear",
}
WHISPER_DECODER = {
    "layer": "layer_whisper_decoder",
    "embed": "embed_whisper_decoder",
    "mask_scores": "add_small",
    "eager/cross_core": "core_eager_cross",
    "sdpa/cross_core": "core_flash_copy",
}

LINEARS = BIASED - {"head"}
T5_TRAITS = {"position_ids": "none", "inputs": "pairs"}
BART_TRAITS = {"position_ids": "token", "decoder.position_ids": "row", "inputs": "pairs", "logits_bias": "buffer"}
WHISPER_TRAITS = {"decoder.position_ids": "token", "inputs": "sound"}
ENCODER_KINDS, DECODER_KINDS = ("encoder",), ("decoder",)


def _family(
    roles: Roles,
    decoder: Roles,
    traits: Mapping[str, str],
    positions: str,
    *,
    biases: frozenset[str] = frozenset(),
    tied: bool = True,
    max_positions: int = 1024,
) -> Family:
    """A row with two stacks; sinusoids of sound are a table that nobody trains (WhisperEncoder: requires_grad_(False))."""
    return Family(
        roles=roles,
        decoder=decoder,
        traits={**PLAIN, **traits},
        positions=positions,
        biases=biases,
        tied=tied,
        max_positions=max_positions,
        encoder=ENCODER_KINDS,
        pattern=DECODER_KINDS,
        frozen=frozenset({"sources"}),
    )


FAMILIES: dict[str, Family] = {
    "t5": _family(T5, T5_DECODER, T5_TRAITS, "none"),
    "mt5": _family(T5 | T5_GATED, T5_DECODER, T5_TRAITS, "none"),
    "bart": _family(BART, BART_DECODER, BART_TRAITS, "offset", biases=LINEARS),
    "whisper": _family(WHISPER, WHISPER_DECODER, WHISPER_TRAITS, "learned", biases=LINEARS - {"k"}, max_positions=448),
}
