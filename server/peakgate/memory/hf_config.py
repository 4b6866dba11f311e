"""Reads the content of a Hugging Face config.json: the names of the same thing differ by family.

Source: transformers models/*/configuration_*.py.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from peakgate.memory.clip_config import is_clip, read_clip
from peakgate.memory.encoder_config import DROPOUT_KEYS, NOTHING, EncoderExtras, dropout_of, encoder_extras, knows
from peakgate.memory.encoder_config import NAMES as OWN_NAMES
from peakgate.memory.encoder_config import POSITIONS as OWN_POSITIONS
from peakgate.memory.job import MultiHeadLatentAttention, Transformer

Config = Mapping[str, object]

NAMES: dict[str, tuple[str, ...]] = {
    "layers": ("num_hidden_layers", "n_layer", "n_layers", "num_decoder_layers", "decoder_layers", "num_layers"),
    "hidden_size": ("hidden_size", "n_embd", "n_embed", "d_model"),
    "heads": ("num_attention_heads", "n_head", "n_heads", "num_heads", "decoder_attention_heads"),
    "kv_heads": ("num_key_value_heads", "num_kv_heads"),
    "head_dim": ("head_dim", "d_kv"),
    "ffn_hidden_size": ("intermediate_size", "ffn_dim", "n_inner", "ffn_hidden_size", "d_ff", "decoder_ffn_dim"),
    "vocab_size": ("vocab_size",),
    "encoder_layers": ("encoder_layers",),
    "experts": ("num_local_experts", "num_experts", "n_routed_experts"),
    "experts_per_token": ("num_experts_per_tok",),
    "shared_experts": ("n_shared_experts",),
    "expert_ffn_hidden_size": ("moe_intermediate_size",),
    "dense_layers": ("first_k_dense_replace",),
    "sliding_window": ("sliding_window",),
}

POSITIONS = ("n_positions", "max_position_embeddings", "max_seq_len")
LEARNED = ("gpt2", "opt", "bert", "roberta", "mpt", "gpt_bigcode", "bart", "whisper", "gptj")
PATTERNED = ("gemma3", "gemma3_text", "gpt_oss", "olmo3")

HIDDEN_DROPOUT = {
    "gpt2": "resid_pdrop",
    "opt": "dropout",
    "gpt_neox": "hidden_dropout",
    "phi3": "resid_pdrop",
    "falcon": "hidden_dropout",
    "bloom": "hidden_dropout",
    "gptj": "resid_pdrop",
    "phi": "resid_pdrop",
    "seed_oss": "residual_dropout",
    "stablelm": "hidden_dropout",
    "starcoder2": "residual_dropout",
}
ATTENTION_DROPOUT = {"gpt2": "attn_pdrop", "gptj": "attn_pdrop"}
ROTARY = ("rotary_pct", "partial_rotary_factor")
SHARES = (*ROTARY, *dict.fromkeys((*HIDDEN_DROPOUT.values(), *ATTENTION_DROPOUT.values(), "attention_dropout", *DROPOUT_KEYS)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Extras:
    """What a config says beyond the dimensions."""

    attention_bias: bool = False
    attention_dropout: float = 0.0
    hidden_dropout: float = 0.0
    rotary_share: float | None = None
    normalises_top_k: bool = False
    new_decoder: bool = False
    """Falcon's second decoder, which a count of key-value heads does not tell from the first."""
    mlp_bias: bool = False
    parallel: bool = False
    """StableLM: both parts of a layer side by side."""
    shared_width: int = 0
    """Inner width of a shared expert that is stated by itself (Qwen2-MoE)."""
    pattern: int = 0
    """Layers of a repeating pattern whose last one is global; 0: the family's own."""
    encoder: EncoderExtras = NOTHING
    """What only an encoder's config says."""


def read(config: Config) -> tuple[Transformer, Extras]:
    """The dimensions and the rest; a multimodal config is read at its `text_config`. Missing sizes stay None."""
    if is_clip(config):
        transformer, extras, dropout = read_clip(config)
        return transformer, Extras(encoder=extras, attention_dropout=dropout)
    _, text = _text(config)
    c: Config = {"model_type": config.get("model_type"), **text}
    block = str(c.get("model_type") or "")
    tied = c.get("tie_word_embeddings")
    return Transformer(
        block=block,
        layers=_size(c, "layers"),
        hidden_size=_size(c, "hidden_size"),
        heads=_size(c, "heads"),
        kv_heads=1 if _multi_query(c) else _size(c, "kv_heads"),
        head_dim=_size(c, "head_dim"),
        ffn_hidden_size=_size(c, "ffn_hidden_size"),
        vocab_size=_size(c, "vocab_size") or _classes(block, c),
        tied_embeddings=tied if isinstance(tied, bool) else None,
        max_positions=_integer(c, OWN_POSITIONS.get(block, ""), *POSITIONS) if block in LEARNED else 0,
        encoder_layers=_size(c, "encoder_layers"),
        sliding_window=0 if c.get("use_sliding_window") is False else _size(c, "sliding_window"),
        experts=_size(c, "experts"),
        experts_per_token=_size(c, "experts_per_token"),
        shared_experts=_size(c, "shared_experts"),
        expert_ffn_hidden_size=_size(c, "expert_ffn_hidden_size"),
        dense_layers=_size(c, "dense_layers"),
        mla=_latent(c),
    ), _extras(block, c)


def key_of(config: Config, name: str) -> str:
    """What the config itself calls a size, for a message; the size's own name when it has none."""
    prefix, text = _text(config)
    return prefix + next((key for key in NAMES.get(name, ()) if key in text), name)


def shares(config: Config) -> Iterator[tuple[str, float]]:
    """(key, value) of every number that must lie between 0 and 1: dropouts, and the part of a head that rotary positions turn."""
    prefix, text = _text(config)
    rope = text.get("rope_parameters")
    for where, c in ((prefix, text), (f"{prefix}rope_parameters.", rope if isinstance(rope, Mapping) else {})):
        for key in SHARES:
            value = c.get(key)
            if isinstance(value, int | float) and not isinstance(value, bool):
                yield where + key, float(value)


def _text(config: Config) -> tuple[str, Config]:
    text = config.get("text_config")
    return ("text_config.", text) if isinstance(text, Mapping) else ("", config)


def _size(c: Config, name: str) -> int | None:
    return _integer(c, *OWN_NAMES.get(str(c.get("model_type")), {}).get(name, ()), *NAMES[name])


def _classes(block: str, c: Config) -> int | None:
    """Classes of a model that has no vocabulary (configuration_utils.py: num_labels = 2)."""
    return dict(encoder_extras(block, c).sizes).get("labels", 2) if block == "vit" else None


def _multi_query(c: Config) -> bool:
    """Falcon's first decoder: one key-value head, whatever num_kv_heads says."""
    return c.get("multi_query") is True and not c.get("new_decoder_architecture")


def _extras(block: str, c: Config) -> Extras:
    patterns = c.get("layer_types")
    pattern = list(patterns).index("full_attention") + 1 if isinstance(patterns, list | tuple) and "full_attention" in patterns else 0
    own = knows(block)
    return Extras(
        attention_bias=c.get("attention_bias") is True or c.get("use_qkv_bias") is True,
        mlp_bias=c.get("mlp_bias") is True,
        parallel=c.get("use_parallel_residual") is True and block == "stablelm",
        shared_width=_integer(c, "shared_expert_intermediate_size") or 0,
        attention_dropout=dropout_of(block, "attention", c) if own else _share(c, ATTENTION_DROPOUT.get(block, "attention_dropout")),
        hidden_dropout=dropout_of(block, "hidden", c) if own else _share(c, HIDDEN_DROPOUT.get(block, "")),
        rotary_share=_rotary_share(c),
        normalises_top_k=c.get("norm_topk_prob") is True,
        new_decoder=c.get("new_decoder_architecture") is True,
        pattern=pattern if block in PATTERNED else 0,
        encoder=encoder_extras(block, c),
    )


def _rotary_share(c: Config) -> float | None:
    """The part of a head that positions turn: stated as a share, or by GPT-J as a width."""
    width, head = _integer(c, "rotary_dim"), (_size(c, "hidden_size") or 0) // (_size(c, "heads") or 1)
    if width and head:
        return width / head
    return next((value for key, value in shares(c) if key.rsplit(".", 1)[-1] in ROTARY), None)


def _latent(c: Config) -> MultiHeadLatentAttention | None:
    """Multi-head latent attention; a query rank of null means none, a missing one that of the configuration class."""
    if "kv_lora_rank" not in c:
        return None
    return MultiHeadLatentAttention(
        q_lora_rank=_integer(c, "q_lora_rank") or (0 if "q_lora_rank" in c else None),
        kv_lora_rank=_integer(c, "kv_lora_rank"),
        qk_rope_head_dim=_integer(c, "qk_rope_head_dim"),
        qk_nope_head_dim=_integer(c, "qk_nope_head_dim"),
        v_head_dim=_integer(c, "v_head_dim"),
    )


def _integer(c: Config, *names: str) -> int | None:
    for name in names:
        value = c.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value == int(value):
            return int(value)
    return None


def _share(c: Config, name: str) -> float:
    value = c.get(name)
    return float(value) if isinstance(value, int | float) else 0.0
