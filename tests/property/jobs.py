"""Random jobs: legal ones of the modelled families, and documents that only look legal."""

from __future__ import annotations

import dataclasses
import types
from dataclasses import replace
from typing import Any, Union, get_args, get_origin, get_type_hints

from hypothesis import strategies as st
from tests.unit.memory.builders import FAMILY_SIZES, a_job, a_transformer

from peakgate.memory.catalog.gpus import GPUS
from peakgate.memory.catalog.models import MODELS
from peakgate.memory.change import Value
from peakgate.memory.choices import CHOICES
from peakgate.memory.families import FAMILIES
from peakgate.memory.job import Job, Lora, Model, Transformer
from peakgate.memory.recipes import RECIPES

MODELLED = tuple(block for block in FAMILY_SIZES if block in FAMILIES)
SHARDINGS = CHOICES["parallelism.sharding"]
TARGETS = (("q_proj", "v_proj"), ("all-linear",), ("gate_proj", "down_proj", "up_proj", "c_fc", "q_proj"), ("o_proj",), ("v_proj",))

LEVERS: dict[str, tuple[Value, ...]] = {
    "method.name": (*("sft",) * 9, "dpo", "kto", "orpo", "grpo", "reward"),
    "batch.micro_batch_size": (1, 2, 3),
    "batch.sequence_length": (8, 16, 33),
    "batch.gradient_accumulation_steps": (1, 1, 2, 4),
    "precision.recipe": tuple(RECIPES),
    "attention.implementation": CHOICES["attention.implementation"],
    "attention.mask": ("none", "none", "padding"),
    "dropout.attention": (0.0, 0.1),
    "dropout.hidden": (0.0, 0.1),
    "checkpointing.mode": ("none", "full", "selective"),
    "checkpointing.every": (1, 1, 2, 3),
    "checkpointing.layers": (0, 0, 1, 2),
    "checkpointing.reentrant": (False, False, True),
    "optimizer.name": CHOICES["optimizer.name"],
    "optimizer.implementation": CHOICES["optimizer.implementation"],
    "optimizer.set_to_none": (True, True, False),
    "loss.implementation": ("full", "full", "fused", "chunked"),
    "loss.keep_logits": (False, True),
    "framework.name": ("huggingface", "huggingface", "textbook", "deepspeed"),
    "framework.fsdp.reshard_after_forward": (True, True, False),
    "framework.ddp.gradient_as_bucket_view": (False, True),
    "framework.zero.overlap_comm": (False, True),
    "parallelism.sequence_parallel": (False, True),
    "parallelism.pipeline_schedule": ("1f1b", "gpipe"),
    "parallelism.virtual_pipeline": (1, 1, 2),
}


@st.composite
def transformers(draw: st.DrawFn, block: str | None = None) -> Transformer:
    """A small model of a modelled family."""
    layers, tied = draw(st.sampled_from((1, 2, 3, 4, 5, 7, 9, 13))), draw(st.booleans())
    return a_transformer(block or draw(st.sampled_from(MODELLED)), layers=layers, tied_embeddings=tied)


def adapters() -> st.SearchStrategy[Lora]:
    """Adapters on one or all linear layers, over a whole or a quantised base."""
    return st.builds(
        Lora,
        rank=st.sampled_from((4, 8)),
        targets=st.sampled_from(TARGETS),
        base_dtype=st.sampled_from((None, "nf4", "int8")),
        adapter_dtype=st.sampled_from((None, "bfloat16")),
    )


@st.composite
def levers(draw: st.DrawFn, layers: int) -> dict[str, Value]:
    """One value of each lever, and degrees that multiply."""
    changes = {path: draw(st.sampled_from(values)) for path, values in LEVERS.items()}
    tensor, pipeline = draw(st.sampled_from((1, 1, 2))), draw(st.sampled_from((1, 1, 2, 3)))
    pipeline = pipeline if pipeline <= layers else 1
    chunks = changes["parallelism.virtual_pipeline"] if 2 * pipeline <= layers else 1
    return changes | {
        "parallelism.virtual_pipeline": chunks,
        "parallelism.tensor": tensor,
        "parallelism.pipeline": pipeline,
        "parallelism.sharding": draw(st.sampled_from(SHARDINGS)),
        "parallelism.world_size": tensor * pipeline * draw(st.sampled_from((1, 2, 4))),
    }


@st.composite
def jobs(draw: st.DrawFn, /, *, with_adapters: bool = True, **fixed: Value) -> Job:
    """A legal job; `fixed` are levers with one value, their dots written as two underscores."""
    model = draw(transformers())
    stages = 1 if model.block == "clip" else model.layers or 1  # what its towers send each other between stages is not counted
    changes = draw(levers(stages)) | {path.replace("__", "."): value for path, value in fixed.items()}
    lora = draw(st.none() | adapters()) if with_adapters else None
    return a_job(changes, model=model, lora=lora)


# ---- documents that only look legal
WHOLE = (0, 1, 1, 2, 2, 3, 4, 8, 16, 33, 64, 128, -1, 2**24, 2**62)
SHARES = (0.0, 0.1, 0.5, 1.0, -1.0, float("nan"), float("inf"))
BLOCKS = (*FAMILIES, "nonsense")
WORDS: dict[str, tuple[str, ...]] = {
    **CHOICES,
    "gpu.type": (*GPUS, "h1000"),
    "model.preset": (*MODELS, "nonsense"),
    "model.transformer.block": BLOCKS,
    "lora.targets": ("q_proj", "up_proj", "all-linear", "c_attn", "nonsense"),
    "framework.version": ("4.57.6", "4.40", "5.0", "main", ""),
    "framework.fused_kernels": ("rms_norm", "swiglu", "gelu", "nonsense"),
}
CONFIG_KEYS = (
    *("num_hidden_layers", "n_layer", "hidden_size", "n_embd", "num_attention_heads", "n_head", "num_key_value_heads", "num_kv_heads"),
    *("head_dim", "intermediate_size", "vocab_size", "sliding_window", "num_local_experts", "num_experts_per_tok", "n_positions"),
    *("rotary_pct", "partial_rotary_factor", "attention_dropout", "hidden_dropout", "attn_pdrop", "layer_types", "use_sliding_window"),
    *("tie_word_embeddings", "multi_query", "new_decoder_architecture", "text_config", "rope_parameters", "norm_topk_prob"),
)
ODD: tuple[object, ...] = (None, "x", [], {}, True, False, 0, 0.25, 1, 2, 4, 8, 64, 96, -3, 1.5, 10**12, float("nan"), ["full_attention"])


def documents() -> st.SearchStrategy[Job]:
    """Any job that the types allow, most of its fields unset and most values plausible."""
    return _build(Job, "")


def _configs() -> st.SearchStrategy[dict[str, object]]:
    keys = st.dictionaries(st.sampled_from(CONFIG_KEYS), st.sampled_from(ODD))
    sizes = {"num_hidden_layers": 3, "hidden_size": 64, "num_attention_heads": 8, "vocab_size": 100}
    return st.builds(lambda block, odd: {**sizes, "model_type": block, **odd}, st.sampled_from(BLOCKS), keys | st.just({}))


@st.composite
def _models(draw: st.DrawFn) -> Model:
    kind = draw(st.sampled_from(("transformer", "transformer", "wild", "hf_config", "preset", "parameters", "operations", "profile", "")))
    if kind == "transformer":
        block = draw(st.sampled_from(BLOCKS))
        names = st.sampled_from(("kv_heads", "head_dim", "vocab_size", "experts", "layers"))
        sizes = draw(st.dictionaries(names, st.sampled_from((1, 2, 4, 8))))
        return Model(transformer=a_transformer(block, **sizes))
    if kind == "wild":
        return Model(transformer=draw(_build(Transformer, "model.transformer")))
    if kind == "hf_config":
        return Model(hf_config=draw(_configs()))
    if kind == "profile":
        return Model(profile={})
    return replace(Model(), **{kind: draw(_values(_inner(get_type_hints(Model)[kind]), f"model.{kind}"))}) if kind else Model()


def _build(kind: type, path: str) -> st.SearchStrategy[Any]:
    if kind is Model:
        return _models()
    hints = get_type_hints(kind)
    return st.builds(
        kind,
        **{each.name: _values(hints[each.name], f"{path}.{each.name}" if path else each.name) for each in dataclasses.fields(kind)},
    )


def _values(hint: object, path: str) -> st.SearchStrategy[Any]:
    inner = _inner(hint)
    if inner is not hint:
        stated = _values(inner, path)
        return st.integers(0, 4).flatmap(lambda n: stated if n == 4 else st.none())
    if get_origin(hint) is tuple:
        return st.just(()) | st.lists(_values(get_args(hint)[0], path), max_size=3).map(tuple)
    if dataclasses.is_dataclass(hint):
        return _build(hint, path)  # type: ignore[arg-type]  # it is a class
    if hint is str:
        return st.sampled_from(WORDS.get(path, ("", "x")))
    numbers: dict[object, st.SearchStrategy[Any]] = {int: st.sampled_from(WHOLE), float: st.sampled_from(SHARES), bool: st.booleans()}
    return numbers[hint]


def _inner(hint: object) -> Any:
    """X of an optional X."""
    if get_origin(hint) in (Union, types.UnionType):
        return next(each for each in get_args(hint) if each is not type(None))
    return hint
