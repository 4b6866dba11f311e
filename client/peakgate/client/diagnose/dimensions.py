"""The sizes of a job that tensors are made of: from its document, the catalogue and the answer's facts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from google.protobuf.json_format import MessageToDict

from peakgate.v1.catalog_service_pb2 import CatalogModel
from peakgate.v1.prediction_pb2 import ModelFacts
from peakgate.v1.training_job_pb2 import Model, TrainingJob, Transformer

CONFIG_KEYS = {
    "hidden_size": ("hidden_size", "n_embd", "d_model", "dim"),
    "layers": ("num_hidden_layers", "n_layer", "num_layers", "n_layers"),
    "heads": ("num_attention_heads", "n_head", "num_heads", "n_heads"),
    "kv_heads": ("num_key_value_heads",),
    "head_dim": ("head_dim", "d_kv"),
    "ffn_hidden_size": ("intermediate_size", "n_inner", "ffn_dim", "d_ff"),
    "vocab_size": ("vocab_size",),
    "experts": ("num_local_experts", "num_experts", "n_routed_experts"),
    "encoder_layers": ("encoder_layers",),
    "max_positions": ("n_positions",),
}
"""Names of one size in the config.json of transformers' models (configuration_*.py)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dimensions:
    """Sizes by the symbols of the papers: b micro-batch, s sequence, V vocabulary, h hidden, f feed-forward, a heads, q and k widths of
    queries and of keys, L layers, P parameters, T those that are trained, `layer` parameters of one layer; 0 is not known. `shards`: ranks
    that divide the states; what tensor, pipeline and context parallelism divide is what a rank has of it."""

    b: int = 0
    s: int = 0
    V: int = 0
    h: int = 0
    f: int = 0
    a: int = 0
    q: int = 0
    k: int = 0
    P: int = 0
    T: int = 0
    layer: int = 0
    shards: int = 1


def dimensions_of(job: TrainingJob, facts: ModelFacts, catalog: Sequence[CatalogModel]) -> Dimensions:
    """The sizes of a job, whose parameters the answer has counted."""
    model, ways = _transformer(job.model, catalog), job.parallelism
    tensor, stages, context = max(1, ways.tensor), max(1, ways.pipeline), max(1, ways.context)
    width = model.head_dim or (model.hidden_size // model.heads if model.heads else 0)
    return Dimensions(
        b=job.batch.micro_batch_size * max(1, job.method.sequences_per_example),
        s=job.batch.sequence_length // context,
        V=model.vocab_size // tensor,
        h=model.hidden_size,
        f=(model.ffn_hidden_size or 4 * model.hidden_size) // tensor,
        a=model.heads // tensor,
        q=model.heads * width // tensor,
        k=(model.kv_heads or model.heads) * width // tensor,
        P=facts.parameters // (tensor * stages),
        T=facts.trainable_parameters // (tensor * stages),
        layer=_layer(model, facts.parameters) // tensor,
        shards=ways.shard_degree or max(1, (ways.world_size or job.gpu.count) // (tensor * stages)),
    )


def _transformer(model: Model, catalog: Sequence[CatalogModel]) -> Transformer:
    if model.WhichOneof("kind") == "hf_config":
        return _of_config(MessageToDict(model.hf_config))
    if model.WhichOneof("kind") != "preset":
        return model.transformer
    wanted = model.preset.lower()
    rows = (row for row in catalog if wanted in {row.name.lower(), *(alias.lower() for alias in row.aliases)})
    return next((row.dimensions for row in rows), Transformer())


def _of_config(config: Mapping[str, object]) -> Transformer:
    inner = config.get("text_config")
    config = {**config, **inner} if isinstance(inner, Mapping) else config
    model = Transformer(tied_embeddings=config.get("tie_word_embeddings") is True or "n_embd" in config)  # GPT-2's are tied by default
    for name, keys in CONFIG_KEYS.items():
        if size := _first(config, keys):
            setattr(model, name, size)
    return model


def _first(config: Mapping[str, object], keys: Sequence[str]) -> int:
    found = (config.get(key) for key in keys)
    return next((int(value) for value in found if isinstance(value, int | float) and value > 0), 0)


def _layer(model: Transformer, parameters: int) -> int:
    """Parameters of one layer where all are alike: all but embeddings and the last norm, divided. That norm's bias, where it has one, is
    less of a layer than a block of the allocator."""
    if not model.layers or not parameters or model.experts or model.encoder_layers:
        return 0
    tables = model.vocab_size * (1 if model.tied_embeddings else 2) + model.max_positions
    return max(0, parameters - (tables + 1) * model.hidden_size) // model.layers
