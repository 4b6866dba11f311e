"""Whether a job can be judged at all: words, ranges, and degrees that agree. Every bad field is named at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace

from peakgate.memory.absurd import LARGEST, endless_losses, too_large
from peakgate.memory.catalog.gpus import find_gpu
from peakgate.memory.catalog.models import find_model
from peakgate.memory.catalog.nearest import did_you_mean
from peakgate.memory.choices import CHOICES
from peakgate.memory.frozen import problems
from peakgate.memory.hf_config import key_of, read, shares
from peakgate.memory.job import Job, Model, Transformer
from peakgate.memory.model import describe, missing_sizes, takes_experts, transformer_of
from peakgate.memory.plain.network import NetworkError, network_of
from peakgate.memory.prediction import FieldError, JobError
from peakgate.memory.traced.read import ProfileError
from peakgate.memory.traced.read import read as read_profile

ZERO_IS_A_SIZE = (
    "model.transformer.max_positions",
    "model.transformer.encoder_layers",
    "model.transformer.sliding_window",
    "model.transformer.mtp_layers",
    "model.transformer.experts",
    "model.transformer.experts_per_token",
    "model.transformer.shared_experts",
    "model.transformer.expert_ffn_hidden_size",
    "model.transformer.dense_layers",
    "model.transformer.mla",
    "evaluate",
    "batch.target_length",
    "checkpointing.layers",
    "gpu.memory_bytes",
    "node.host_memory_bytes",
    "framework",
    "model.operations",
    "batch.micro_batch_size",
    "batch.sequence_length",
    "batch.image_size",
    "batch.patch_size",
    "model.transformer.kv_heads",
    "model.transformer.head_dim",
)
"""Fields whose 0 means none or not stated."""


SHARES = (
    "dropout.attention",
    "dropout.hidden",
    "lora.dropout",
    "checkpointing.budget",
    "method.generation.memory_fraction",
    "model.operations.layers",
)
"""Fields from 0 to 1."""


LEARNED_POSITIONS = ("gpt2", "opt", "bert", "roberta", "xlm-roberta")
"""Blocks whose position table is learned (transformers models/*/modeling_*.py): a longer sequence fails in the embedding."""


def check(job: Job) -> None:
    """Raises one JobError that names every field that is wrong.

    Its reason is that of the fields when they agree (a model or GPU that is not known, degrees that do not multiply), else FIELD_INVALID.
    """
    found = [("FIELD_INVALID", error) for error in (*_one_model(job), *_values(job))]
    bad = tuple(error.field for _, error in found)
    known = list(_unknown_names(job))
    found += known
    sound = not any(path.startswith(("model", "method")) for path in bad) and not any(reason == "MODEL_UNKNOWN" for reason, _ in known)
    if sound:
        found += [("FIELD_INVALID", error) for error in (*_dimensions(job), *_positions(job), *endless_losses(job))]
        found += [("FIELD_INVALID", error) for error in _frozen(job)] if not found else []
    if not any(path.startswith(("parallelism", "gpu.count")) for path in bad):
        found += [("PARALLELISM_MISMATCH", error) for error in _degrees(job, transformer_of(job.model)[0] if sound else None)]
    if found:
        reasons = {reason for reason, _ in found}
        raise JobError(reasons.pop() if len(reasons) == 1 else "FIELD_INVALID", tuple(error for _, error in found))


def world_of(job: Job) -> int:
    """GPUs of the job: stated, or as many as are asked for, or the smallest number its degrees allow."""
    p = job.parallelism
    model = (p.tensor or 1) * (p.pipeline or 1) * (p.context or 1)
    smallest = model * max(1, -(-(p.shard_degree or 1) // (p.context or 1)))
    return p.world_size or job.gpu.count or smallest


def _models(job: Job) -> Iterator[tuple[str, Model]]:
    """(path, description) of the trained model and of every other one that is stated."""
    yield "model", job.model
    for path in ("critic", "teacher", "reward"):
        model = getattr(job.method, path)
        if model is not None:
            yield f"method.{path}", model


def _one_model(job: Job) -> Iterator[FieldError]:
    for path, model in _models(job):
        named = [field.name for field in fields(model) if getattr(model, field.name) is not None]
        if not named:
            yield FieldError(
                field=path, description="is missing: give one of preset, hf_config, transformer, operations, profile, parameters"
            )
        if len(named) > 1:
            yield FieldError(field=path, description=f"has {len(named)} descriptions ({', '.join(named)}): keep one")


def _values(job: Job) -> Iterator[FieldError]:
    for path, value in _leaves(job, ""):
        if path in ("name", "frozen") or path.startswith(("model.hf_config", "model.profile")):
            continue
        for each in value if isinstance(value, tuple) else (value,):
            problem = _problem(path, each)
            if problem:
                yield FieldError(field=path, description=problem)


def _leaves(node: object, prefix: str) -> Iterator[tuple[str, object]]:
    """(path, stated value) of every field that is set."""
    if not is_dataclass(node):
        return
    for name in node.__dataclass_fields__:
        value, path = getattr(node, name), f"{prefix}{name}"
        if is_dataclass(value):
            yield from _leaves(value, f"{path}.")
        elif value is not None and value != ():
            yield path, value


def _problem(path: str, value: object) -> str:
    if isinstance(value, str):
        words = CHOICES.get(path)
        if words is None or value in words:
            return ""
        near = did_you_mean(value, words)
        return f"{value!r} is not one of {', '.join(words)}{near and f', {near}'}"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return ""
    if not math.isfinite(value):
        return f"{value} is not a number"
    return _share_problem(value) if path in SHARES else _size_problem(path, value)


def _share_problem(value: float) -> str:
    return "" if 0 <= value <= 1 else f"{value:g} is outside 0 to 1"


def _size_problem(path: str, value: float) -> str:
    smallest = 0 if path.startswith(ZERO_IS_A_SIZE) else 1
    if value < smallest:
        return f"{value} is {'negative' if value < 0 else 'too small'}: give {smallest} or more"
    return too_large(path, value)


def _unknown_names(job: Job) -> Iterator[tuple[str, FieldError]]:
    """(reason, field) of a model or a GPU that no catalogue holds."""
    for path, model in _models(job):
        if model.preset is not None:
            yield from _unknown(find_model, model.preset, f"{path}.preset")
    if job.gpu.type:
        yield from _unknown(find_gpu, job.gpu.type, "gpu.type")


def _unknown(find: Callable[[str], object], name: str, path: str) -> Iterator[tuple[str, FieldError]]:
    try:
        find(name)
    except JobError as error:
        yield from ((error.reason, replace(each, field=path)) for each in error.fields)


def _dimensions(job: Job) -> Iterator[FieldError]:
    """What a model's own sizes contradict, by the names that the document uses."""
    for path, model in _models(job):
        yield from _sizes_of_model(path, model)


def _sizes_of_model(path: str, model: Model) -> Iterator[FieldError]:
    if model.operations is not None:
        try:
            network_of(model.operations)
        except NetworkError as error:
            yield FieldError(field=f"{path}.operations.{error.path}", description=error.description)
    if model.profile is not None:
        try:
            read_profile(model.profile)
        except ProfileError as error:
            yield FieldError(field=f"{path}.profile.{error.field}", description=error.description)
    if model.transformer is not None:
        for name, problem in (*_missing(model.transformer), *_contradictions(model.transformer)):
            yield FieldError(field=f"{path}.transformer.{name}", description=problem)
    if model.hf_config is not None:
        yield from _sizes_of_config(path, model.hf_config)


def _sizes_of_config(path: str, config: Mapping[str, object]) -> Iterator[FieldError]:
    t, _ = read(config)
    for name, problem in (*_sizes(t), *_contradictions(t)):
        yield FieldError(field=f"{path}.hf_config.{key_of(config, name)}", description=problem)
    for name, share in shares(config):
        if _share_problem(share):
            yield FieldError(field=f"{path}.hf_config.{name}", description=_share_problem(share))


def longest_sequence(job: Job) -> int:
    """The most tokens that a job may state: a learned table has a row for each position, and no more."""
    t, _ = transformer_of(job.model)
    rows = t.max_positions or 0 if t is not None and t.block in LEARNED_POSITIONS else 0
    return rows if rows and job.batch.sequence_length_is != "cap" else LARGEST["batch"]


def _positions(job: Job) -> Iterator[FieldError]:
    stated, rows = job.batch.sequence_length or 0, longest_sequence(job)
    if rows < min(stated, LARGEST["batch"]):
        description = f"{stated} tokens, and the model has {rows} learned positions: use no more"
        yield FieldError(field="batch.sequence_length", description=description)


def _frozen(job: Job) -> Iterator[FieldError]:
    """Names of what is not trained must be parts of the model."""
    if job.frozen and job.model.profile is None:
        for problem in problems(job.frozen, describe(job.model).architecture):
            yield FieldError(field="frozen", description=problem)


def _missing(t: Transformer) -> Iterator[tuple[str, str]]:
    for name in missing_sizes(t):
        yield name, "is missing: give a positive number"
    if not t.block:
        yield "block", "is missing: give a Hugging Face model_type, or gpt"


def _sizes(t: Transformer) -> Iterator[tuple[str, str]]:
    """Sizes that a config.json gives are bound by the same limits as stated ones."""
    for field in fields(t):
        value = getattr(t, field.name)
        if isinstance(value, int) and not isinstance(value, bool):
            problem = _size_problem(f"model.transformer.{field.name}", value)
            if problem:
                yield field.name, problem


def _contradictions(t: Transformer) -> Iterator[tuple[str, str]]:
    if t.heads and t.hidden_size and not t.head_dim and t.hidden_size % t.heads:
        yield "heads", f"{t.heads} heads do not divide hidden_size {t.hidden_size}: change one, or state head_dim"
    if t.heads and t.kv_heads and t.heads % t.kv_heads:
        yield "kv_heads", f"{t.kv_heads} key-value heads do not divide {t.heads} heads"
    if t.experts and not takes_experts(t):
        yield "experts", f"{t.experts} experts, and the block {t.block!r} has none: leave it out"
    if t.experts and (t.experts_per_token or 0) > t.experts:
        yield "experts_per_token", f"{t.experts_per_token} of {t.experts} experts"


def _degrees(job: Job, t: Transformer | None) -> Iterator[FieldError]:
    p, world = job.parallelism, world_of(job)
    tensor, pipeline, context = p.tensor or 1, p.pipeline or 1, p.context or 1
    model = tensor * pipeline * context
    if world % model:
        yield FieldError(
            field="parallelism.world_size",
            description=f"{world} is no multiple of tensor {tensor} × pipeline {pipeline} × context {context} = {model}: "
            f"use {-(-world // model) * model}",
        )
        return
    data = world // model
    if p.world_size and job.gpu.count and p.world_size != job.gpu.count:
        yield FieldError(
            field="gpu.count", description=f"{job.gpu.count} GPUs for a world of {p.world_size}: make them equal, or leave one out"
        )
    if p.shard_degree and (data * context) % p.shard_degree:
        yield FieldError(
            field="parallelism.shard_degree", description=f"{p.shard_degree} does not divide data × context = {data * context}"
        )
    if p.expert and (data * context * tensor) % p.expert:
        yield FieldError(
            field="parallelism.expert", description=f"{p.expert} does not divide data × context × tensor = {data * context * tensor}"
        )
    if t is not None and t.heads and t.heads % tensor:
        yield FieldError(field="parallelism.tensor", description=f"{tensor} does not divide {t.heads} heads")
    if t is not None and t.layers and pipeline > t.layers + (t.encoder_layers or 0):
        yield FieldError(field="parallelism.pipeline", description=f"{pipeline} stages for {t.layers} layers")
    if (
        p.stage_layers
        and t is not None
        and t.layers
        and (len(p.stage_layers) != pipeline or sum(p.stage_layers) != t.layers + (t.encoder_layers or 0))
    ):
        yield FieldError(
            field="parallelism.stage_layers", description=f"{list(p.stage_layers)} must be {pipeline} stages that sum to {t.layers} layers"
        )
