"""From a description of a model to its architecture: catalogue name, config.json or dimensions."""

from __future__ import annotations

from dataclasses import dataclass

from peakgate.memory import hf_config
from peakgate.memory.architecture import Architecture, Family
from peakgate.memory.catalog.models import find_model
from peakgate.memory.families import EVERY_LINEAR, FAMILIES, STAND_INS
from peakgate.memory.hf_config import Extras
from peakgate.memory.job import Model, Transformer


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """`architecture` is None when only a parameter count is known. `undecided` says what cannot be counted yet."""

    architecture: Architecture | None
    parameters: int = 0
    undecided: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()


REQUIRED = ("layers", "hidden_size", "heads", "vocab_size")
"""Dimensions without which nothing can be counted."""


def transformer_of(model: Model) -> tuple[Transformer | None, Extras]:
    """The dimensions that a description states; None for a bare count, a plain network or a traced profile. Raises JobError."""
    if model.preset is not None:
        return find_model(model.preset).transformer, Extras()
    if model.hf_config is not None:
        return hf_config.read(model.hf_config)
    return model.transformer, Extras()


def describe(model: Model) -> Described:
    """The architecture of a model; raises JobError for an unknown name."""
    transformer, extras = transformer_of(model)
    if transformer is None:
        return _without_dimensions(model)
    missing = [name for name in REQUIRED if not getattr(transformer, name)]
    if missing:
        return Described(architecture=None, undecided=(f"model: the config does not say {', '.join(missing)}",))
    return _with_dimensions(transformer, extras)


def _without_dimensions(model: Model) -> Described:
    if model.parameters is not None:
        return Described(architecture=None, parameters=model.parameters, undecided=("model.parameters: a bare count gives the model states only; give the model itself",))
    what = "operations" if model.operations is not None else "profile"
    return Described(architecture=None, undecided=(f"model.{what}: this version does not count it yet; give a preset, an hf_config or a transformer",))


def _with_dimensions(t: Transformer, extras: Extras) -> Described:
    key = _family_key(t)
    undecided: tuple[str, ...] = ()
    stand_in = ""
    if key not in FAMILIES:
        stand_in = STAND_INS.get(key, "llama" if (t.experts or 0) == 0 else "mixtral")
        undecided = (f"model: the block {t.block!r} has no kernels of its own in this version; figures are those of {stand_in!r}",)
        key = stand_in
    return Described(architecture=architecture_of(t, FAMILIES[key], extras, stand_in), undecided=undecided)


def _family_key(t: Transformer) -> str:
    block = {"gemma3_text": "gemma3", "qwen2_5": "qwen2", "falcon": "falcon_mqa" if t.kv_heads == 1 else "falcon"}.get(t.block, t.block)
    if block == "llama" and (t.experts or 0) > 0:
        return "llama-moe"
    return block


def architecture_of(t: Transformer, family: Family, extras: Extras, stand_in: str = "") -> Architecture:
    """A family with the sizes of `t` (all of REQUIRED set)."""
    h, a, layers, vocabulary = (int(getattr(t, name)) for name in ("hidden_size", "heads", "layers", "vocab_size"))
    n = t.kv_heads or a
    d = t.head_dim or h // a
    f = t.ffn_hidden_size or 4 * h
    k, experts = t.experts_per_token or 0, t.experts or 0
    if experts:
        f = t.expert_ffn_hidden_size or f
    share = extras.rotary_share if extras.rotary_share is not None else family.rotary_share
    rotary = int(d * share) if family.positions == "rotary" and t.block != "gpt" else 0
    window = (t.sliding_window or 0) if family.windowed else 0
    dims = {
        "h": h, "q": a * d, "kv": n * d, "a": a, "n": n, "d": d, "qkv": (a + 2 * n) * d, "f": f, "f2": 2 * f, "L": layers + (t.encoder_layers or 0), "V": vocabulary,
        "rope": rotary * family.rope_tables, "rotary": a * rotary, "unrotated": a * (d - rotary), "masks": family.masks, "window": window,
        "E": experts, "k": k, "kh": k * h, "kf2": 2 * k * f,
    }
    learned = family.positions != "rotary"
    positions = (t.max_positions or (1024 if learned else 0)) + (2 if family.positions == "offset" else 0) if learned else (t.max_positions or 0)
    roles = dict(family.roles)
    if t.block == "phi3":
        dims["unrotated"] = 0
    if experts and t.block == "qwen3_moe" and not extras.normalises_top_k:
        roles["normalise_top_k"] = "pass"
    if not learned and positions and t.block == "gpt":
        roles["embed"] = "embed_positions"
    pattern = ("local",) * (extras.pattern - 1) + ("global",) if extras.pattern > 1 else family.pattern
    gpt = t.block == "gpt"
    return Architecture(
        block=t.block, roles=roles, dims=dims, pattern=pattern, tied=family.tied if t.tied_embeddings is None else t.tied_embeddings,
        biases=family.biases | (EVERY_LINEAR & {"q", "k", "v", "o"} if extras.attention_bias else frozenset()), positions=positions,
        buffer_bytes=(2 if t.block == "falcon" else 4) * rotary,
        attention_dropout=0.1 if gpt else extras.attention_dropout, hidden_dropout=0.1 if gpt else extras.hidden_dropout,
        stand_in=stand_in, flags=frozenset({"positions_per_token"}) if family.positions == "offset" else frozenset(),
    )
