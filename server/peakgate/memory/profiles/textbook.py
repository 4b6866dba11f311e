"""The textbook's accounting: what seed A counts, and nothing else.

Source: Korthikanti et al. 2022 (arXiv 2205.05198), section 4; ML Systems, Lesson 6, section 3. Gradients are resident all step long, logits
are 4sbV, and there are no temporaries, no tables, no rounding and no runtime.
"""

from __future__ import annotations

from peakgate.memory.blocks import parse
from peakgate.memory.profiles.profile import Profile

BLOCKS = parse("""
attention_textbook x
  _c = linear.qkv x -> qkv
  q, k, v = split3 _c
  o = core q k v
  _o = linear.o o -> h
  return dropout_hidden _o
core_textbook q k v
  w = matmul q k -> scores
  w = softmax w
  w = dropout_attention w
  return matmul w v -> q
core_flash_textbook q k v
  return flash_textbook q k v
head_textbook x
  return logits_textbook.head x -> V
""")

RENAMES = {
    "layer_norm": "layer_norm_textbook",
    "rms_norm": "rms_norm_textbook",
    "rms_norm_gemma": "rms_norm_textbook",
    "rms_norm_olmo": "rms_norm_textbook",
    "attention_gpt2": "attention_textbook",
    "head_linear": "head_textbook",
    "causal_loss": "loss_textbook",
    "core_eager": "core_textbook",
    "core_flash": "core_flash_textbook",
    "gelu_new": "gelu",
    "softmax_fp32": "softmax",
    "rope": "pass",
    "repeat": "view",
    "heads": "view",
    "heads_free": "view",
}

PROFILE = Profile(
    renames=RENAMES,
    ignored=frozenset({"temporaries", "communication"}),
    rounds=False,
    workspaces=0,
    context=False,
    tables=False,
    copies_rebuilt_input=True,
    optimizer_temporaries=False,
    final_norm_suffix="_final",
)
