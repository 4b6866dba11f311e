"""Jobs and plans with full defaults for the tests of the memory model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import cast

from peakgate.memory.change import Value, with_changes
from peakgate.memory.check import world_of
from peakgate.memory.compose import compose, rank_of
from peakgate.memory.counts import counts_of
from peakgate.memory.job import Batch, Framework, Job, Lora, Model, MultiHeadLatentAttention, Precision, Transformer
from peakgate.memory.meter import High
from peakgate.memory.model import Described, describe
from peakgate.memory.pipeline import Stage, stages
from peakgate.memory.plan import Plan
from peakgate.memory.prediction import Prediction
from peakgate.memory.resolve import Resolved, resolve
from peakgate.memory.step import Walk, walk
from peakgate.server.convert import job_from_message
from peakgate.v1.document import parse_job

MIB = 1 << 20
GB = 1_000_000_000

Fields = dict[str, object]
"""A job document, or a part of one."""

FAMILY_SIZES: dict[str, dict[str, int]] = {
    "gpt": {},
    "gpt2": {"max_positions": 128},
    "opt": {"max_positions": 128},
    "gpt_neox": {},
    "falcon": {"kv_heads": 4},
    "llama": {"kv_heads": 2},
    "mistral": {"kv_heads": 2, "sliding_window": 16},
    "qwen2": {"kv_heads": 2},
    "qwen3": {"kv_heads": 2, "head_dim": 24},
    "phi3": {"kv_heads": 4},
    "olmo2": {"kv_heads": 4},
    "gemma2": {"kv_heads": 2, "head_dim": 24},
    "gemma3": {"kv_heads": 2, "head_dim": 24, "sliding_window": 16},
    "mixtral": {"kv_heads": 2, "experts": 4, "experts_per_token": 2},
    **{block: {"experts": 4, "experts_per_token": 2} for block in ("deepseek_v2", "deepseek_v3", "gpt_oss", "qwen2_moe", "olmoe")},
    **{block: {} for block in ("bloom", "mpt", "phi", "gptj", "stablelm")},
    **{block: {"kv_heads": 2} for block in ("nemotron", "glm", "gemma", "granite", "arcee", "apertus", "seed_oss", "smollm3")},
    **{block: {"kv_heads": 2, "sliding_window": 16} for block in ("olmo3", "starcoder2")},
    **{block: {"encoder_layers": 2} for block in ("t5", "mt5", "bart", "whisper", "clip")},
    "gpt3": {"max_positions": 128},
    "qwen3_moe": {"kv_heads": 2, "experts": 8, "experts_per_token": 2, "expert_ffn_hidden_size": 48},
}
"""What a block needs beside the common sizes."""

CONFIG: dict[str, object] = {
    "model_type": "llama",
    "num_hidden_layers": 2,
    "hidden_size": 64,
    "num_attention_heads": 4,
    "intermediate_size": 96,
    "vocab_size": 100,
}
"""The config.json of a small Llama."""


def a_transformer(block: str = "llama", **sizes: int | bool) -> Transformer:
    """A small model of a family: 3 layers, hidden size 64, 8 heads, 96 inside the feed-forward part, 250 words."""
    common = {"layers": 3, "hidden_size": 64, "heads": 8, "ffn_hidden_size": 96, "vocab_size": 250}
    return Transformer(block=block, **{**common, **FAMILY_SIZES.get(block, {}), **sizes})  # type: ignore[arg-type]  # fields of Transformer


LATENT = MultiHeadLatentAttention(q_lora_rank=0, kv_lora_rank=16, qk_rope_head_dim=4, qk_nope_head_dim=8, v_head_dim=8)
"""A small latent attention, whose queries are whole."""


def a_routed_transformer(**sizes: int | bool) -> Transformer:
    """A small DeepSeek-V3: a dense layer, then two of eight experts and a shared one."""
    experts = {"experts": 8, "experts_per_token": 2, "expert_ffn_hidden_size": 48, "shared_experts": 1, "dense_layers": 1}
    return replace(a_transformer("deepseek_v3", **experts, **sizes), mla=LATENT)


def a_wide_transformer() -> Transformer:
    """A Llama of 4 layers whose weights, not their rounding to blocks, decide: hidden size 512, 4,000 words."""
    return a_transformer(layers=4, hidden_size=512, ffn_hidden_size=2048, vocab_size=4000)


def a_bare_job() -> Job:
    """A job that states its model and its shape alone."""
    return Job(model=Model(transformer=a_transformer()), batch=Batch(micro_batch_size=2, sequence_length=32))


def a_job(changes: Mapping[str, Value] | None = None, *, model: Transformer | Model | None = None, lora: Lora | None = None) -> Job:
    """Two sequences of 32 tokens of a small Llama in bf16 on Hugging Face's kernels; `changes` are paths with their values."""
    described = model if isinstance(model, Model) else Model(transformer=model or a_transformer())
    job = Job(
        name="test",
        model=described,
        batch=Batch(micro_batch_size=2, sequence_length=32),
        precision=Precision(recipe="bf16"),
        framework=Framework(name="huggingface"),
        lora=lora,
    )
    return with_changes(job, (changes or {}).items())


def a_plan(changes: Mapping[str, Value] | None = None, *, model: Transformer | Model | None = None, lora: Lora | None = None) -> Plan:
    """The plan of `a_job`."""
    return plan_of(a_job(changes, model=model, lora=lora))


def plan_of(job: Job) -> Plan:
    """What a legal job resolves to."""
    architecture = describe(job.model).architecture
    if architecture is None:
        raise ValueError("the job has no dimensions")
    return resolve(job, architecture, world_of(job)).plan


def stages_of(plan: Plan) -> list[Stage]:
    """Every stage of the plan's pipeline."""
    return stages(plan.degrees, plan.architecture.dims["L"], plan.accumulation)


def of_stage(plan: Plan, stage: Stage, resolved: Resolved, described: Described, *, exact: bool = False) -> Prediction:
    """The prediction for one stage of a pipeline."""
    walked = walk(plan, stage)
    return compose(rank_of(plan, stage, walked.states, resolved, described), counts_of(plan, stage, walked), exact=exact)


def first_walk(plan: Plan, *, record: bool = False) -> Walk:
    """The step of the first stage."""
    return walk(plan, stages_of(plan)[0], record=record)


def item_bytes(prediction: Prediction, item: str) -> int:
    """Bytes of one line of the ledger; 0 when it is not there."""
    return sum(line.bytes for line in prediction.ledger if line.item == item)


def category_bytes(prediction: Prediction, category: str) -> int:
    """Bytes of a ledger category at the peak."""
    return sum(line.bytes for line in prediction.ledger if line.category == category)


def textbook_13b(changes: Mapping[str, Value] | None = None) -> Job:
    """Lesson 6's example: GPT-1.3B, 8 sequences of 2,048 tokens, eager attention, dropout, 16 bytes a parameter."""
    job = Job(
        model=Model(transformer=Transformer(block="gpt", layers=24, hidden_size=2048, heads=16, vocab_size=50257)),
        batch=Batch(micro_batch_size=8, sequence_length=2048),
        framework=Framework(name="textbook"),
    )
    return with_changes(job, (changes or {}).items())


def sizes_of(highs: Mapping[str, High]) -> dict[str, tuple[int, int]]:
    """(live, blocks) by phase."""
    return {phase: (high.live, high.blocks) for phase, high in highs.items()}


def job_of(document: object) -> Job:
    """The job of a document, read as the service reads it."""
    return job_from_message(parse_job(cast("dict[str, object]", document)))
