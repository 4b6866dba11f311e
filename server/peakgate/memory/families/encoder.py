"""Encoders: BERT and RoBERTa (norms after each part), ViT (norms before, patches instead of tokens).

Sources: transformers models/{bert,roberta,vit}/modeling_*.py and configuration_*.py.
"""

from __future__ import annotations

from peakgate.memory.architecture import Family
from peakgate.memory.blocks import parse

BLOCKS = parse("""
attention_plain x                            # queries, keys and values are named until the output projection is done
  _q = linear.q x -> q
  q = heads_q _q
  _k = linear.k x -> kv
  k = heads_k _k
  _v = linear.v x -> kv
  v = value_heads _v
  o = core q k v
  return linear.o o -> h
attention_inside x                           # bert: BertSelfAttention returns before BertSelfOutput runs
  _q = linear.q x -> q
  q = heads_q _q
  _k = linear.k x -> kv
  k = heads_k _k
  _v = linear.v x -> kv
  v = value_heads _v
  return core q k v
output_bert o x                              # BertSelfOutput, BertOutput: the projection is named until its norm is done
  o = linear o -> h
  o = dropout_hidden o
  _s = add o x
  return norm _s
up_bert x
  x = linear.up x -> f
  return act x
layer_bert x
  _c = attention x
  a = output_bert.o _c x
  _m = up_bert a
  return output_bert.down _m a
embeddings_bert x
  e = embedding.V x -> h
  e = require_grad e
  t = embedding.types types -> h
  s = add e t
  p = embedding.positions positions -> h
  s = add_positions s p
  s = norm.embedding s
  return dropout_hidden s
embed_bert x
  return embeddings_bert x
transform_bert x                             # BertPredictionHeadTransform, RobertaLMHead
  x = linear.transform x -> h
  x = act x
  return norm.transform x
head_bert x
  _t = transform_bert x
  return linear.head _t -> V
pooler_bert x                                # BertPooler, RobertaClassificationHead
  _f = first_token.first x -> h
  _p = linear.pooler _f -> h
  return tanh _p
head_bert_pooled x
  p = pooler_bert x
  p = dropout_hidden p
  return linear.labels p -> labels
head_bert_spans x
  return linear.spans x -> spans
mlp_encoder x
  x = linear.up x -> f
  x = act x
  x = dropout_activation x
  x = linear.down x -> h
  return dropout_mlp x
layer_residual x                             # vit, whisper: a norm in front of each part
  n = norm x
  n = attention n
  n = dropout_hidden n
  n = add x n
  m = norm n
  m = mlp m
  return add n m
embeddings_vit x
  e = convolve.patches x -> h
  e = prepend.cls e -> h
  e = add_table.positions e
  return dropout_hidden e
embed_vit x
  return embeddings_vit x
head_vit x                                   # ViTForImageClassification: the class token alone
  _f = first_token.first x -> h
  return linear.head _f -> V
""")

BIASED = frozenset({"q", "k", "v", "o", "up", "down", "head", "transform", "pooler", "labels", "spans"})

ENCODER = {
    "attention": "attention_plain",
    "mlp": "mlp_encoder",
    "norm": "layer_norm",
    "act": "gelu",
    "mask_scores": "pass",
    "dropout_mlp": "dropout_hidden",
    "dropout_embedding": "dropout_hidden",
    "sdpa/heads_q": "view",
    "sdpa/heads_k": "view",
}
"""No causal mask is added; torch.nn.CrossEntropyLoss takes the logits as they are."""

BERT = ENCODER | {
    "layer": "layer_bert",
    "attention": "attention_inside",
    "softmax_up": "softmax",
    "embed": "embed_bert",
    "add_positions": "add_broadcast",
    "final": "pass",
    "head": "head_bert",
}
ROBERTA = BERT | {"add_positions": "add"}
VIT = ENCODER | {"layer": "layer_residual", "embed": "embed_vit", "head": "head_vit"}

PLAIN = {"objective": "plain"}
BUFFERED = PLAIN | {"position_ids": "buffer"}
COUNTED = PLAIN | {"position_ids": "token"}

HEADS = {"classification": {"head": "head_bert_pooled"}, "qa": {"head": "head_bert_spans"}}

FAMILIES: dict[str, Family] = {
    "bert": Family(roles=BERT, biases=BIASED, tied=True, positions="learned", max_positions=512, heads=HEADS, traits=BUFFERED),
    "roberta": Family(roles=ROBERTA, biases=BIASED, tied=True, positions="learned", max_positions=514, heads=HEADS, traits=COUNTED),
    "vit": Family(roles=VIT, biases=BIASED, positions="learned", heads={"classification": {}}, traits=PLAIN | {"inputs": "images"}),
}
