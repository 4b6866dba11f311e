"""Megatron-LM's BERT: layers like its GPT's under a padding mask, token types, a transform in front of the head, a binary head beside it.

Sources: Megatron-LM megatron/core/models/bert/{bert_layer_specs,bert_model,bert_lm_head,pooler}.py, models/common/embeddings/
language_model_embedding.py, examples/bert/pretrain_bert.py.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from peakgate.memory.architecture import Architecture
from peakgate.memory.blocks import parse

BLOCKS = parse("""
embed_megatron_types x
  e = embedding.V x -> h
  p = embedding.positions positions -> h
  e = add_broadcast e p
  _t = embedding.types types -> h
  e = add e _t
  return dropout_hidden e
head_megatron_bert x                         # the pooled token's own logits are named to the end of the model's forward function
  _f = first_token.first x -> h
  _p = linear.pooler _f -> h
  _a = tanh _p
  binary = linear.labels _a -> labels
  _t = linear.transform x -> h
  _g = gelu _t
  _n = norm.transform _g
  return linear.head _n -> V
""")

BERT = {
    "eager/core": "core_unfused_padded",
    "embed": "embed_megatron_types",
    "final": "layer_norm",
    "head": "head_megatron_bert",
}
"""Beside the roles of Megatron-LM's GPT."""

BIASES = frozenset({"q", "o", "up", "down", "head", "transform", "pooler", "labels"})


@lru_cache(maxsize=64)
def as_built(published: Architecture) -> Architecture:
    """What Megatron-LM builds of a BERT: one matrix for queries, keys and values, every product with a bias."""
    return replace(published, biases=BIASES)
