"""What the config.json of an encoder says beyond a decoder's sizes, by the names and defaults of each configuration_*.py.

Source: transformers models/{bert,roberta,vit,t5,mt5,bart,whisper}/configuration_*.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

Config = Mapping[str, object]

_Names = dict[str, tuple[str, ...]]

_T5: _Names = {"layers": ("num_decoder_layers", "num_layers"), "encoder_layers": ("num_layers",)}
_BART: _Names = {"layers": ("decoder_layers",), "heads": ("decoder_attention_heads",), "ffn_hidden_size": ("decoder_ffn_dim",)}

NAMES: dict[str, _Names] = {"t5": _T5, "mt5": _T5, "bart": _BART, "whisper": _BART}
"""Sizes whose names are others than a decoder's, by model_type."""

DEFAULTS: dict[str, dict[str, int]] = {
    "bert": {"types": 2, "labels": 2, "spans": 2},
    "roberta": {"types": 1, "labels": 2, "spans": 2},
    "vit": {"image": 224, "patch": 16, "channels": 3},
    "t5": {"buckets": 32},
    "mt5": {"buckets": 32},
    "whisper": {"mel": 80},
}
"""Sizes of the family's own and their values when a config does not say (roberta-base: one token type)."""

KEYS: dict[str, tuple[str, ...]] = {
    "types": ("type_vocab_size",),
    "labels": ("num_labels",),
    "image": ("image_size",),
    "patch": ("patch_size",),
    "channels": ("num_channels",),
    "buckets": ("relative_attention_num_buckets",),
    "mel": ("num_mel_bins",),
    "sources": ("max_source_positions",),
    "encoder_f": ("encoder_ffn_dim",),
}

DROPOUTS: dict[str, dict[str, tuple[str, float]]] = {
    "bert": {"hidden": ("hidden_dropout_prob", 0.1), "attention": ("attention_probs_dropout_prob", 0.1)},
    "roberta": {"hidden": ("hidden_dropout_prob", 0.1), "attention": ("attention_probs_dropout_prob", 0.1)},
    "vit": {"hidden": ("hidden_dropout_prob", 0.0), "attention": ("attention_probs_dropout_prob", 0.0)},
    "t5": {"hidden": ("dropout_rate", 0.1), "attention": ("dropout_rate", 0.1)},
    "mt5": {"hidden": ("dropout_rate", 0.1), "attention": ("dropout_rate", 0.1)},
    "bart": {"hidden": ("dropout", 0.1), "attention": ("attention_dropout", 0.0), "activation": ("activation_dropout", 0.0)},
    "whisper": {"hidden": ("dropout", 0.0), "attention": ("attention_dropout", 0.0), "activation": ("activation_dropout", 0.0)},
}
"""(key, default) of each dropout."""

DROPOUT_KEYS = tuple(dict.fromkeys(key for row in DROPOUTS.values() for key, _ in row.values()))

ACTIVATIONS = {"gelu": "gelu", "relu": "relu", "gelu_new": "gelu_new", "silu": "silu", "swish": "silu"}
ACTIVATION_KEYS = ("hidden_act", "activation_function")
POSITIONS = {"whisper": "max_target_positions"}

HEADS = {"SequenceClassification": "classification", "ImageClassification": "classification", "QuestionAnswering": "qa"}


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderExtras:
    """What one of these configs says: sizes by their symbol, roles by name, a head, dropouts."""

    sizes: tuple[tuple[str, int], ...] = ()
    roles: tuple[tuple[str, str], ...] = ()
    head: str = ""
    plain_linears: frozenset[str] = frozenset()
    """Linear layers without a bias where the family's have one."""


NOTHING = EncoderExtras()
"""Of a config that is none of these."""


def knows(block: str) -> bool:
    """Whether the model_type is one of these."""
    return block in DEFAULTS or block in NAMES


def defaults_of(block: str) -> dict[str, int]:
    """Sizes of the family's own when nothing is said."""
    return DEFAULTS.get(block, {})


def encoder_extras(block: str, c: Config) -> EncoderExtras:
    """Reads them; empty for another model_type."""
    if not knows(block):
        return NOTHING
    sizes = {symbol: value for symbol, keys in KEYS.items() for key in keys if isinstance(value := c.get(key), int)}
    labels = c.get("id2label")
    if isinstance(labels, Mapping):
        sizes["labels"] = len(labels)
    return EncoderExtras(
        sizes=tuple(sorted(sizes.items())),
        roles=tuple(sorted(_roles(block, c).items())),
        head=_head(c),
        plain_linears=frozenset({"q", "k", "v"}) if c.get("qkv_bias") is False else frozenset(),
    )


def dropout_of(block: str, which: str, c: Config) -> float:
    """A dropout of the config, or its class's default."""
    key, default = DROPOUTS[block][which]
    value = c.get(key, default)
    return float(value) if isinstance(value, int | float) else default


def _roles(block: str, c: Config) -> dict[str, str]:
    """T5: `feed_forward_proj` names the activation and whether it is gated; the others name the activation alone."""
    if block in ("t5", "mt5"):
        projection = str(c.get("feed_forward_proj") or ("relu" if block == "t5" else "gated-gelu"))
        gated, _, act = projection.rpartition("-")
        act = "gelu_new" if projection == "gated-gelu" else act
        return {"mlp": "mlp_t5_gated" if gated else "mlp_encoder", "act": ACTIVATIONS.get(act, "gelu")}
    named = next((str(c[key]) for key in ACTIVATION_KEYS if c.get(key)), "gelu")
    roles = {"act": ACTIVATIONS.get(named, "gelu")}
    if "activation" in DROPOUTS[block] and dropout_of(block, "activation", c) > 0:
        roles["dropout_activation"] = "dropout"
    return roles


def _head(c: Config) -> str:
    names = c.get("architectures")
    name = str(names[0]) if isinstance(names, list | tuple) and names else ""
    return next((head for end, head in HEADS.items() if name.endswith("For" + end)), "")
