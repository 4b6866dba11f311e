"""Published models by name: dimensions for the memory model, and the exact parameter count that they must give."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from peakgate.memory.catalog.model_rows import DECODERS, ENCODERS, EXPERTS
from peakgate.memory.catalog.nearest import did_you_mean
from peakgate.memory.job import MultiHeadLatentAttention, Transformer
from peakgate.memory.prediction import FieldError, JobError


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSpec:
    """A published model. `aliases` are its Hugging Face ids; `published_parameters` counts a tied weight once."""

    name: str
    aliases: tuple[str, ...]
    transformer: Transformer
    published_parameters: int
    source: str


def find_model(name: str) -> ModelSpec:
    """The model of a catalogue name, a Hugging Face id or the last part of one; case does not matter.

    Raises JobError with MODEL_UNKNOWN and the nearest names.
    """
    wanted = name.strip().lower()
    found = _BY_ALIAS.get(wanted)
    if found is None:
        names = MODELS if "/" not in wanted else [alias for spec in MODELS.values() for alias in spec.aliases]
        hint = did_you_mean(wanted, names) or "`peakgate catalog models` lists the names"
        description = f"unknown model {name!r}; {hint}; for another model state model.hf_config or model.transformer instead"
        raise JobError("MODEL_UNKNOWN", (FieldError(field="model.preset", description=description),))
    return found


def _specs(table: str) -> Iterator[ModelSpec]:
    for line in table.strip().splitlines():
        if not line.startswith("#"):
            yield _spec(line.split())


def _spec(words: list[str]) -> ModelSpec:
    name, block, *numbers = words[:9]
    tied, parameters, *rest = words[9:]
    ids = tuple(word for word in rest if "=" not in word)
    options = dict(word.split("=") for word in rest if "=" in word)
    return ModelSpec(
        name=name,
        aliases=ids,
        transformer=_transformer(block, [int(number) for number in numbers], options, tied=tied == "yes"),
        published_parameters=int(parameters),
        source=f"config.json and safetensors index of {ids[0]}",
    )


def _transformer(block: str, numbers: list[int], options: Mapping[str, str], *, tied: bool) -> Transformer:
    layers, hidden_size, heads, kv_heads, head_dim, ffn_hidden_size, vocab_size = numbers

    def option(key: str) -> int:
        return int(options.get(key, "0"))

    return Transformer(
        block=block,
        head=options.get("head", "lm"),
        layers=layers,
        hidden_size=hidden_size,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        ffn_hidden_size=ffn_hidden_size,
        vocab_size=vocab_size,
        tied_embeddings=tied,
        max_positions=option("positions"),
        encoder_layers=option("encoder"),
        sliding_window=option("window"),
        experts=option("experts"),
        experts_per_token=option("active"),
        shared_experts=option("shared"),
        expert_ffn_hidden_size=option("expert_ffn"),
        dense_layers=option("dense"),
        mla=_mla(options["mla"]) if "mla" in options else None,
    )


def _mla(numbers: str) -> MultiHeadLatentAttention:
    q_lora_rank, kv_lora_rank, rope, nope, value = (int(number) for number in numbers.split(","))
    return MultiHeadLatentAttention(
        q_lora_rank=q_lora_rank, kv_lora_rank=kv_lora_rank, qk_rope_head_dim=rope, qk_nope_head_dim=nope, v_head_dim=value
    )


def _by_alias() -> dict[str, ModelSpec]:
    by_last_part = {alias.rpartition("/")[2].lower(): spec for spec in MODELS.values() for alias in spec.aliases}
    by_id = {alias.lower(): spec for spec in MODELS.values() for alias in spec.aliases}
    return by_last_part | by_id | MODELS  # a catalogue name wins over the last part of an id


MODELS: dict[str, ModelSpec] = {spec.name: spec for table in (DECODERS, EXPERTS, ENCODERS) for spec in _specs(table)}
"""Every model by name."""

_BY_ALIAS = _by_alias()
