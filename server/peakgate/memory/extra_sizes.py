"""Sizes that only some blocks name: ranks of latent attention, shared experts, dense layers, the turned part of key heads."""

from __future__ import annotations

from peakgate.memory.architecture import Family
from peakgate.memory.job import MultiHeadLatentAttention, Transformer

LATENT_DEFAULTS = MultiHeadLatentAttention(q_lora_rank=1536, kv_lora_rank=512, qk_rope_head_dim=64, qk_nope_head_dim=128, v_head_dim=128)
"""transformers models/deepseek_v3/configuration_deepseek_v3.py and deepseek_v2/configuration_deepseek_v2.py."""


def latent_of(t: Transformer, family: Family) -> MultiHeadLatentAttention | None:
    """The ranks and widths of latent attention, with the defaults of the published configuration class; None where there is none."""
    if not family.latent:
        return None
    stated, default = t.mla or MultiHeadLatentAttention(), LATENT_DEFAULTS
    return MultiHeadLatentAttention(
        q_lora_rank=default.q_lora_rank if stated.q_lora_rank is None else stated.q_lora_rank,
        kv_lora_rank=stated.kv_lora_rank or default.kv_lora_rank,
        qk_rope_head_dim=stated.qk_rope_head_dim or default.qk_rope_head_dim,
        qk_nope_head_dim=stated.qk_nope_head_dim or default.qk_nope_head_dim,
        v_head_dim=stated.v_head_dim or default.v_head_dim,
    )


def head_dim_of(t: Transformer, family: Family) -> int:
    """Width of a query head."""
    mla = latent_of(t, family)
    if mla is not None:
        return (mla.qk_nope_head_dim or 0) + (mla.qk_rope_head_dim or 0)
    return t.head_dim or (t.hidden_size or 0) // (t.heads or 1)


def extra_sizes(t: Transformer, family: Family, routed: int, rotary: int, shared_width: int) -> dict[str, int]:
    """Sizes beside those of every block. `routed`: a routed expert's width; `rotary`: elements of a head that positions turn."""
    h, n, d = t.hidden_size or 0, t.kv_heads or t.heads or 0, head_dim_of(t, family)
    widths = {"fd": t.ffn_hidden_size or 4 * h, "fs": shared_width or (t.shared_experts or 0) * routed}
    parts = {"rotary_kv": n * rotary, "unrotated_kv": n * (d - rotary)}
    return widths | parts | _latent_sizes(t, family)


def _latent_sizes(t: Transformer, family: Family) -> dict[str, int]:
    mla, a = latent_of(t, family), t.heads or 0
    if mla is None:
        return {}
    rope, nope, value, rank = mla.qk_rope_head_dim or 0, mla.qk_nope_head_dim or 0, mla.v_head_dim or 0, mla.kv_lora_rank or 0
    heads = {"ropes": a * rope, "nopes": a * nope, "values": a * value, "kvb": a * (nope + value)}
    return heads | {"rope_head": rope, "qr": mla.q_lora_rank or 0, "kvr": rank, "latent": rank + rope}


def correction_bytes(t: Transformer, family: Family) -> int:
    """A fp32 correction of each routed expert's score (transformers models/deepseek_v3/modeling_*.py: e_score_correction_bias)."""
    sparse = max(0, (t.layers or 0) - (t.dense_layers or 0))
    return 4 * (t.experts or 0) * sparse if family.roles["mlp"] == "moe_grouped" else 0
