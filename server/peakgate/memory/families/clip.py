"""CLIP: a tower of pictures and a tower of text, whose last tokens are compared.

Source: transformers models/clip/modeling_clip.py, activations.py (QuickGELUActivation).
"""

from __future__ import annotations

from peakgate.memory.architecture import Family
from peakgate.memory.blocks import parse
from peakgate.memory.families.encoder import ENCODER

BLOCKS = parse("""
quick_gelu x
  _s = scale x
  _g = sigmoid _s
  return multiply x _g
embed_clip_pictures x                        # CLIPVisionEmbeddings: a convolution without a bias; then pre_layrnorm
  _c = convolve_unbiased.patches x -> h
  e = require_grad _c
  e = prepend.cls e -> h
  p = embedding.positions positions -> h
  s = add_broadcast e p
  return norm.embedding s
final_clip_pictures x                        # post_layernorm of the class token, visual_projection
  _f = first_token.first x -> h
  _n = norm.final _f
  return linear.projection _n -> projection
final_clip_text x
  return norm.final x
head_clip x                                  # the hidden state at the end of each text, text_projection
  _p = pick_rows.first x -> h
  return linear.projection _p -> projection
normalised x                                 # _get_vector_norm: pow, sum, pow; then a division
  _p = power x
  _v = mean _p -> groups
  _r = rsqrt _v
  return multiply_rows x _r
""")

PICTURES = ENCODER | {
    "layer": "layer_residual",
    "act": "quick_gelu",
    "embed": "embed_clip_pictures",
    "final": "final_clip_pictures",
    "head": "head_clip",
    "dropout_embedding": "pass",
}
TEXT = {
    "embed": "embed_positions",
    "mask_scores": "add_small",
    "final": "final_clip_text",
}

FAMILIES: dict[str, Family] = {
    "clip": Family(
        roles=PICTURES,
        decoder=TEXT,
        traits={"objective": "contrastive", "inputs": "pictures", "position_ids": "buffer"},
        positions="learned",
        biases=frozenset({"q", "k", "v", "o", "up", "down"}),
        max_positions=77,
        encoder=("encoder",),
        pattern=("decoder",),
    ),
}
