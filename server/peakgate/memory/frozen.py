"""What a job does not train: its words for parts of a model, and which weights they mean.

Words are those of model code: `embed_tokens`, `lm_head`, `layers.3`, `encoder`, `self_attn` …; a leading `model.` or `transformer.` is left
out. A frozen weight has no gradient and no optimizer states; what a layer keeps for its backward pass follows from the tape.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from peakgate.memory.architecture import Architecture

PARTS: dict[str, tuple[str, ...]] = {
    "embeddings": ("embeddings", "embedding", "embed", "embed_tokens", "wte", "wpe", "word_embeddings", "patch_embed", "shared"),
    "head": ("head", "lm_head", "score", "classifier", "output", "qa_outputs"),
    "norm": ("norm", "final_norm", "ln_f", "final_layer_norm", "layernorm"),
    "attention": ("attention", "attn", "self_attn", "self_attention"),
    "mlp": ("mlp", "feed_forward", "ffn"),
    "router": ("router",),
    "experts": ("experts",),
    "norms": ("norms", "layer_norms"),
    "layers": ("layers", "blocks", "h", "layer"),
    "encoder": ("encoder", "vision_tower", "vision_model", "vision_encoder", "audio_tower"),
    "decoder": ("decoder", "language_model", "text_model", "text_encoder"),
    "backbone": ("backbone", "base_model", "body"),
}
"""A part and its names in model code. Encoder and decoder are the two stacks of a model that has two; backbone is all but the head."""

TWO_STACKS = ("encoder", "decoder")
WORDS = {word: part for part, words in PARTS.items() for word in words}
LAYER = re.compile(r"(?:layers|blocks|h|layer)\.(\d+)(?:-(\d+))?$")
PREFIX = re.compile(r"^(?:(?:base_model|model|transformer|module)\.)+")
ATTENTION = frozenset({"q", "k", "v", "o", "qkv", "q_a", "q_b", "kv_a", "kv_b", "sinks"})
FIRST = ("embedding", "add.", "prepend", "convolve", "norm.embedding")
"""How weights in front of the layers are called (`machine._weight_name`) …"""
FINAL = "norm.final"
"""… and the norm behind them; the other weights outside of layers are the head's."""
RELATIVE = "embedding.buckets"
"""The bias by distance, a part of the first layer's attention (transformers models/t5/modeling_t5.py: relative_attention_bias)."""


@dataclass(frozen=True, slots=True)
class Frozen:
    """Parts by name, and numbers of layers, counted from the first of the model."""

    parts: frozenset[str] = frozenset()
    layers: frozenset[int] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.parts or self.layers)


NOTHING = Frozen()
"""Every weight is trained."""


def read_frozen(names: tuple[str, ...]) -> Frozen:
    """What the names mean; those that mean nothing are left out (`unknown_names` lists them)."""
    parts: set[str] = set()
    layers: set[int] = set()
    for name in map(_plain, names):
        if name in WORDS:
            parts.add(WORDS[name])
        elif match := LAYER.match(name):
            layers.update(range(int(match[1]), int(match[2] or match[1]) + 1))
    return Frozen(frozenset(parts), frozenset(layers))


def _plain(name: str) -> str:
    return PREFIX.sub("", name.strip().lower())


def problems(names: tuple[str, ...], architecture: Architecture | None) -> list[str]:
    """Why a name cannot be taken: nobody knows it, or the model has no such part."""
    return [problem for name in names if (problem := _problem(name, architecture))]


def _problem(name: str, architecture: Architecture | None) -> str:
    plain = _plain(name)
    if plain not in WORDS and not LAYER.match(plain):
        return f"{name!r} is no part of a model: use {', '.join(PARTS)}, layers.N or layers.N-M"
    if architecture is None:
        return ""
    if WORDS.get(plain) in TWO_STACKS and not architecture.encoder:
        return f"{name!r}: the model has one stack of layers; use backbone, layers, embeddings"
    last = max(read_frozen((name,)).layers, default=0)
    return f"{name!r}: the model has {architecture.dims['L']} layers, counted from 0" if last >= architecture.dims["L"] else ""


def is_frozen(frozen: Frozen, architecture: Architecture, name: str, kind: str, *, layer: bool, numbered: bool) -> bool:
    """Whether a weight is not trained. `kind`: of its layers, or of the stack behind it; `numbered`: its layer is frozen."""
    if not frozen:
        return False
    stack = "encoder" if kind in architecture.encoder else "decoder"
    part = _part_of_layer(name) if layer else _part_of_ends(name)
    own = {part, "layers"} if layer else {part}
    if part != "head":
        own.add("backbone")
        if architecture.encoder:
            own.add(stack)
    if not layer and architecture.tied and part in ("head", "embeddings"):
        own |= {"head", "embeddings"}
    return numbered or not own.isdisjoint(frozen.parts)


def _part_of_ends(name: str) -> str:
    if name == RELATIVE:
        return "attention"
    return "embeddings" if name.startswith(FIRST) else "norm" if name == FINAL else "head"


def _part_of_layer(name: str) -> str:
    kind, _, tag = name.partition(".")
    if kind == "norm":
        return "norms"
    if kind == "experts" or kind.startswith("expert"):
        return "experts"
    if tag == "router":
        return "router"
    return "attention" if tag in ATTENTION else "mlp"
