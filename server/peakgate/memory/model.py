"""From a description of a model to its architecture: catalogue name, config.json or dimensions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from peakgate.memory import hf_config
from peakgate.memory.architecture import Architecture, Family
from peakgate.memory.catalog.models import find_model
from peakgate.memory.clip_config import default_sizes
from peakgate.memory.encoder_config import defaults_of
from peakgate.memory.extra_sizes import correction_bytes, extra_sizes, head_dim_of, latent_of
from peakgate.memory.families import FAMILIES, LLAMA
from peakgate.memory.hf_config import Extras
from peakgate.memory.job import Model, Operations, Transformer
from peakgate.memory.plain.network import network_of
from peakgate.memory.plain.run import has_convolutions
from peakgate.memory.routed import routed_sizes


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """`architecture` is None when only a parameter count is known. `undecided` says what cannot be counted yet."""

    architecture: Architecture | None
    parameters: int = 0
    undecided: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()


MPT_POSITIONS = 2048
"""transformers models/mpt/configuration_mpt.py: max_seq_len=2048."""

GPTJ_POSITIONS = 2048
"""transformers models/gptj/configuration_gptj.py: n_positions=2048."""

UNNORMALISED = ("qwen3_moe", "qwen2_moe", "olmoe")
"""Blocks whose weights of experts are normalised only where the config says so (norm_topk_prob)."""

OPT_OFFSET = 2
"""transformers models/opt/modeling_opt.py: OPTLearnedPositionalEmbedding, offset = 2."""

REQUIRED = ("layers", "hidden_size", "heads")
"""Dimensions without which nothing can be counted …"""

ROUTED = ("experts", "experts_per_token")
"""… and those of a mixture of experts."""


def transformer_of(model: Model) -> tuple[Transformer | None, Extras]:
    """The dimensions that a description states; None for a bare count, a plain network or a traced profile. Raises JobError."""
    if model.preset is not None:
        spec = find_model(model.preset)
        return spec.transformer, spec.extras
    if model.hf_config is not None:
        return hf_config.read(model.hf_config)
    return model.transformer, Extras()


def describe(model: Model) -> Described:
    """The architecture of a model; raises JobError for an unknown name."""
    transformer, extras = transformer_of(model)
    if transformer is None:
        return _without_dimensions(model)
    missing = missing_sizes(transformer)
    if missing:
        return Described(architecture=None, undecided=(f"model: the config does not say {', '.join(missing)}",))
    return _with_dimensions(transformer, extras)


def missing_sizes(t: Transformer) -> list[str]:
    """Sizes without which nothing can be counted: of every block, and of one whose feed-forward part is a mixture of experts."""
    key = _family_key(t, Extras())
    family = FAMILIES.get(key)
    routed = t.experts or (family is not None and family.roles["mlp"].startswith("moe"))
    stacked = ("encoder_layers",) if family is not None and family.encoder else ()
    return [name for name in (*REQUIRED, *(ROUTED if routed else ()), *stacked) if not getattr(t, name)]


def takes_experts(t: Transformer) -> bool:
    """Whether the family routes tokens; of a block that nobody knows the stand-in does."""
    family = FAMILIES.get(_family_key(t, Extras()))
    return family is None or family.roles["mlp"].startswith("moe")


@lru_cache(maxsize=256)
def _of_operations(operations: Operations) -> Described:
    """A plain network: one stretch of operations between the batch and the loss. Raises NetworkError."""
    network = network_of(operations)
    sizes = dict.fromkeys(("h", "q", "kv", "a", "n", "d", "f", "L", "qkv", "V"), 1) | dict.fromkeys(("E", "k", "rope"), 0)
    assumed = ("model.operations: no workspace of cuDNN is counted (it depends on the algorithm that cuDNN picks)",)
    return Described(
        architecture=Architecture(
            block="operations",
            roles=LLAMA,  # nobody runs them
            dims=sizes,
            pattern=("network",),
            tied=False,
            network=network,
        ),
        assumptions=assumed if has_convolutions(network) else (),
    )


def _without_dimensions(model: Model) -> Described:
    if model.parameters is not None:
        return Described(
            architecture=None,
            parameters=model.parameters,
            undecided=("model.parameters: a bare count gives the model states only; give the model itself",),
        )
    if model.operations is not None:
        return _of_operations(model.operations)
    return Described(
        architecture=None, undecided=("model.profile: this version does not count it yet; give a preset, an hf_config or a transformer",)
    )


@lru_cache(maxsize=512)
def _with_dimensions(t: Transformer, extras: Extras) -> Described:
    key = _family_key(t, extras)
    undecided: tuple[str, ...] = ()
    stand_in = ""
    if key not in FAMILIES:
        stand_in = "mixtral" if t.experts else "llama"
        undecided = (stand_in_note(t.block, stand_in),)
        key = stand_in
    if not t.vocab_size:
        undecided += ("model: vocab_size is not stated; embedding and logits are left out",)
    undecided += _uncounted_head(t, FAMILIES[key], extras)
    if t.block == "clip" and not extras.encoder.sizes:
        undecided += ("model.transformer: the tower of pictures is not stated, so ViT-B/32's is counted; give an hf_config",)
    return Described(architecture=architecture_of(t, FAMILIES[key], extras, stand_in), undecided=undecided)


def _head_of(t: Transformer, extras: Extras) -> str:
    return t.head or extras.encoder.head or "lm"


def _uncounted_head(t: Transformer, family: Family, extras: Extras) -> tuple[str, ...]:
    """A head that a family of encoders does not have a row for; a decoder's is counted as a language model's."""
    head = _head_of(t, extras)
    if head == "lm" or head in family.heads or family.traits.get("objective") != "plain":
        return ()
    return (f"model.transformer.head: {head} has no kernels in {t.block!r}; figures are those of its own head",)


def stand_in_note(block: str, stand_in: str) -> str:
    """What an answer says of a block that another family stands for."""
    return f"model: the block {block!r} has no kernels of its own in this version; figures are those of {stand_in!r}"


def _family_key(t: Transformer, extras: Extras) -> str:
    falcon = "falcon_mqa" if t.kv_heads == 1 and not extras.new_decoder else "falcon"
    block = {"gemma3_text": "gemma3", "qwen2_5": "qwen2", "falcon": falcon, "xlm-roberta": "roberta"}.get(t.block, t.block)
    if block == "llama" and (t.experts or 0) > 0:
        return "llama-moe"
    return block


def architecture_of(t: Transformer, family: Family, extras: Extras, stand_in: str = "") -> Architecture:
    """A family with the sizes of `t` (those of REQUIRED are set)."""
    textbook = t.block == "gpt"  # seed A's layer has three dropouts
    rotary = _rotary(t, family, extras)
    positions = _positions(t, family)
    leading = min(t.dense_layers or 0, t.layers or 0) if t.experts else 0
    return Architecture(
        block=t.block,
        roles=_roles(t, family, extras, positions),
        dims=_dims(t, family, extras, rotary) | _own_dims(t, family, extras, stand_in),
        pattern=("dense",) if leading and leading == t.layers else _pattern(family, extras),
        leading=0 if leading == t.layers else leading,
        tied=family.tied if t.tied_embeddings is None else t.tied_embeddings,
        biases=_biases(family, extras) - extras.encoder.plain_linears,
        positions=positions,
        buffer_bytes=_buffer_bytes(t, family, rotary, positions),
        attention_dropout=0.1 if textbook else extras.attention_dropout,
        hidden_dropout=0.1 if textbook else extras.hidden_dropout,
        implementations=family.implementations,
        stand_in=stand_in,
        flags=family.flags | (frozenset({"positions_per_token"}) if family.positions == "offset" else frozenset()),
        encoder=family.encoder,
        decoder=family.decoder,
        traits=family.traits,
        frozen=family.frozen,
    )


def _roles(t: Transformer, family: Family, extras: Extras, positions: int) -> dict[str, str]:
    """The family's roles, as a config and a head change them."""
    roles = {**family.roles, **family.heads.get(_head_of(t, extras), {}), **dict(extras.encoder.roles)}
    if "normalise_top_k" in roles and t.block in UNNORMALISED and not extras.normalises_top_k:
        roles["normalise_top_k"] = "pass"
    if t.block == "gpt" and positions:
        roles["embed"] = "embed_positions"
    if roles["head"] == "head_t5" and t.tied_embeddings is False:
        roles["head"] = "head_linear"
    latent = latent_of(t, family)
    if latent is not None and not latent.q_lora_rank:
        roles |= {"query": "query_whole", "limit_groups": "pass"}  # V2-Lite: neither a query rank nor groups of experts
    if extras.parallel:
        roles["layer"] = "layer_stablelm_parallel"
    return roles


def _pattern(family: Family, extras: Extras) -> tuple[str, ...]:
    return ("local",) * (extras.pattern - 1) + ("global",) if extras.pattern > 1 else family.pattern


def _biases(family: Family, extras: Extras) -> frozenset[str]:
    attention = ("q", "k", "v") if family.qkv_only else ("q", "k", "v", "o", "q_a", "kv_a")
    more = (attention if extras.attention_bias else ()) + (("gate", "up", "down") if extras.mlp_bias else ())
    return family.biases | frozenset(more)


def _buffer_bytes(t: Transformer, family: Family, rotary: int, positions: int) -> int:
    """inv_freq, one or two of rotary / 2 fp32 elements; a stored table has a row a position."""
    if family.positions == "table":
        return 4 * rotary * positions
    return (2 if t.block == "falcon" else 4) * rotary + correction_bytes(t, family)


def _rotary(t: Transformer, family: Family, extras: Extras) -> int:
    """Elements of a head that rotary positions turn."""
    if family.positions not in ("rotary", "table") or t.block == "gpt":  # seed A counts no tables
        return 0
    latent = latent_of(t, family)
    if latent is not None:
        return latent.qk_rope_head_dim or 0
    return int(head_dim_of(t, family) * (family.rotary_share if extras.rotary_share is None else extras.rotary_share))


def _positions(t: Transformer, family: Family) -> int:
    """Rows of a learned position table."""
    if family.positions in ("rotary", "none", "table", "alibi"):
        return t.max_positions or {"table": GPTJ_POSITIONS, "alibi": MPT_POSITIONS}.get(family.positions, 0)
    return (t.max_positions or family.max_positions) + (OPT_OFFSET if family.positions == "offset" else 0)


def _own_dims(t: Transformer, family: Family, extras: Extras, stand_in: str) -> dict[str, int]:
    """Sizes that only encoders have: token types, buckets, pictures, sound, the encoder's own feed-forward part."""
    sizes = defaults_of(stand_in or _family_key(t, extras)) | dict(extras.encoder.sizes)
    if t.block == "clip":
        sizes = default_sizes() | sizes
    if not family.encoder:
        return sizes
    return {"encoder_layers": t.encoder_layers or 0, "encoder_f": t.ffn_hidden_size or 4 * (t.hidden_size or 0)} | sizes


def _dims(t: Transformer, family: Family, extras: Extras, rotary: int) -> dict[str, int]:
    """The sizes that blocks and kernels name (`architecture.py` has the legend)."""
    h, a, d = t.hidden_size or 0, t.heads or 0, head_dim_of(t, family)
    n, k = t.kv_heads or a, t.experts_per_token or 0
    f = (t.expert_ffn_hidden_size if t.experts else None) or t.ffn_hidden_size or 4 * h
    sizes = {"h": h, "q": a * d, "kv": n * d, "a": a, "n": n, "d": d, "f": f, "L": (t.layers or 0) + (t.encoder_layers or 0)}
    further = {"mtp": t.mtp_layers or 0, "h2": 2 * h}
    joined = {"qkv": (a + 2 * n) * d, "kv2": 2 * n * d, "f2": 2 * f, "kh": k * h, "kf2": 2 * k * f}
    rope = {"rope": int(rotary * family.rope_tables), "rotary": a * rotary, "unrotated": 0 if t.block == "phi3" else a * (d - rotary)}
    window = (t.sliding_window or 0) if family.windowed else 0
    sizes |= routed_sizes(replace(t, mla=latent_of(t, family)))
    more = extra_sizes(t, family, f, rotary, extras.shared_width)
    return (
        sizes
        | joined
        | rope
        | more
        | further
        | {"V": t.vocab_size or 1, "E": t.experts or 0, "k": k, "masks": family.masks, "window": window}
    )
