"""Published models by name: dimensions for the memory model, and the exact parameter count that they must give."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from peakgate.memory.catalog.config_rows import CONFIGS
from peakgate.memory.catalog.model_rows import DECODERS, ENCODERS, EXPERTS
from peakgate.memory.catalog.nearest import did_you_mean
from peakgate.memory.hf_config import Extras, read
from peakgate.memory.job import MultiHeadLatentAttention, Transformer
from peakgate.memory.prediction import FieldError, JobError

COUNTS = {
    "index": "config.json and safetensors index of {}",
    "card": "config.json and model card of {}",
    "pretraining": "config.json and safetensors index of {}, less the pooler and the head of the next sentence",
    "ranks": "config.json of {}; its model card's count less what the tensor parallel ranks hold more than once",
    "cited": "config.json of {}; the count as commonly cited, which these dimensions meet to the unit",
}
"""Where a row and its count come from, by its option `count`. Of StableLM-Alpha's cards: every rank of GPT-NeoX (4 of the 3B, 2 of
the 7B) counts the norms and the biases behind row-parallel matrices again, 6h a layer and 2h at the end."""

TOP_K = Extras(normalises_top_k=True)
"""Of the columns: every mixture of experts there normalises its weights; one that does not stands among the configs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSpec:
    """A published model. `aliases` are its Hugging Face ids; `published_parameters` counts a tied weight once."""

    name: str
    aliases: tuple[str, ...]
    transformer: Transformer
    extras: Extras = field(default=TOP_K)
    published_parameters: int
    source: str


def find_model(name: str) -> ModelSpec:
    """The model of a catalogue name, a Hugging Face id or the last part of one; case does not matter. A site's own come first.

    Raises JobError with MODEL_UNKNOWN and the nearest names.
    """
    wanted = name.strip().lower()
    found = _SITE_ALIASES.get(wanted) or _BY_ALIAS.get(wanted)
    if found is None:
        known = all_models()
        names = known if "/" not in wanted else [alias for spec in known.values() for alias in spec.aliases]
        hint = did_you_mean(wanted, names) or "`peakgate catalog models` lists the names"
        description = f"unknown model {name!r}; {hint}; for another model state model.hf_config or model.transformer instead"
        raise JobError("MODEL_UNKNOWN", (FieldError(field="model.preset", description=description),))
    return found


def all_models() -> dict[str, ModelSpec]:
    """Every model by name: the published ones, and those of the site, which may take a published name."""
    return MODELS | _SITE


def set_site_models(specs: Iterable[ModelSpec]) -> None:
    """Makes `specs` the site's own models, in place of earlier ones. Called once, before the first job."""
    _SITE.clear()
    _SITE_ALIASES.clear()
    _SITE.update({spec.name: spec for spec in specs})
    _SITE_ALIASES.update(_by_alias(_SITE))


def _specs(table: str) -> Iterator[ModelSpec]:
    for line in table.strip().splitlines():
        if not line.startswith("#"):
            yield _spec(line.split())


def _spec(words: list[str]) -> ModelSpec:
    name, block, *numbers = words[:9]
    tied, parameters, *rest = words[9:]
    ids, options = _ids_and_options(rest)
    return ModelSpec(
        name=name,
        aliases=ids,
        transformer=_transformer(block, [int(number) for number in numbers], options, tied=tied == "yes"),
        extras=_extras(options.get("drop", "0,0")),
        published_parameters=int(parameters),
        source=_source(ids, options),
    )


def _configured(table: str) -> Iterator[ModelSpec]:
    for line in table.strip().splitlines():
        name, parameters, config, *rest = line.split()
        ids, options = _ids_and_options(rest)
        transformer, extras = read(json.loads(config))
        yield ModelSpec(
            name=name,
            aliases=ids,
            transformer=transformer,
            extras=extras,
            published_parameters=int(parameters),
            source=_source(ids, options),
        )


def _ids_and_options(words: list[str]) -> tuple[tuple[str, ...], dict[str, str]]:
    return tuple(word for word in words if "=" not in word), dict(word.split("=") for word in words if "=" in word)


def _source(ids: tuple[str, ...], options: Mapping[str, str]) -> str:
    return COUNTS[options.get("count", "index")].format(ids[0])


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


def _extras(drop: str) -> Extras:
    attention, hidden = (float(share) for share in drop.split(","))
    return replace(TOP_K, attention_dropout=attention, hidden_dropout=hidden)


def _mla(numbers: str) -> MultiHeadLatentAttention:
    q_lora_rank, kv_lora_rank, rope, nope, value = (int(number) for number in numbers.split(","))
    return MultiHeadLatentAttention(
        q_lora_rank=q_lora_rank, kv_lora_rank=kv_lora_rank, qk_rope_head_dim=rope, qk_nope_head_dim=nope, v_head_dim=value
    )


def _by_alias(models: Mapping[str, ModelSpec]) -> dict[str, ModelSpec]:
    by_last_part = {alias.rpartition("/")[2].lower(): spec for spec in models.values() for alias in spec.aliases}
    by_id = {alias.lower(): spec for spec in models.values() for alias in spec.aliases}
    by_name = {name.lower(): spec for name, spec in models.items()}
    return by_last_part | by_id | by_name  # a catalogue name wins over the last part of an id


_TABLES = (*(_specs(table) for table in (DECODERS, EXPERTS, ENCODERS)), _configured(CONFIGS))

MODELS: dict[str, ModelSpec] = {spec.name: spec for table in _TABLES for spec in table}
"""Every published model by name."""

_BY_ALIAS = _by_alias(MODELS)

_SITE: dict[str, ModelSpec] = {}
_SITE_ALIASES: dict[str, ModelSpec] = {}
