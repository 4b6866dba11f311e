"""The one table of words that a job document may use, and of the words an answer may hold."""

from __future__ import annotations

FLOATS = ("float32", "bfloat16", "float16", "float8")

CHOICES: dict[str, tuple[str, ...]] = {
    "model.transformer.head": ("lm", "classification", "qa", "none"),
    "model.operations.loss": ("cross_entropy", "mse", "none"),
    "method.name": ("pretrain", "sft", "dpo", "kto", "orpo", "reward", "ppo", "grpo", "distill"),
    "method.reference": ("none", "full", "adapter"),
    "method.generation.mode": ("none", "colocated", "separate"),
    "batch.sequence_length_is": ("exact", "cap"),
    "precision.recipe": (
        "fp32",
        "amp-bf16",
        "amp-fp16",
        "bf16",
        "bf16-master",
        "fsdp-bf16",
        "megatron-bf16",
        "megatron-fp16",
        "deepspeed-bf16",
        "deepspeed-fp16",
    ),
    "precision.parameters": FLOATS,
    "precision.gradients": FLOATS,
    "precision.master_weights": (*FLOATS, "none"),
    "precision.optimizer_states": (*FLOATS, "int8"),
    "precision.compute": FLOATS,
    "precision.fp8.recipe": ("delayed", "current", "blockwise", "mxfp8", "nvfp4"),
    "optimizer.name": (
        "adamw",
        "adam",
        "sgd",
        "sgd-momentum",
        "adafactor",
        "lion",
        "lamb",
        "muon",
        "adamw-8bit",
        "adam-8bit",
        "paged-adamw",
        "paged-adamw-8bit",
    ),
    "optimizer.implementation": ("foreach", "fused", "for-loop"),
    "attention.implementation": ("eager", "sdpa", "flash"),
    "attention.mask": ("none", "ones", "padding"),
    "checkpointing.mode": ("none", "selective", "full", "memory-budget"),
    "checkpointing.modules": ("core_attn", "mla_up_proj", "mlp", "moe_act", "layernorm"),
    "loss.implementation": ("full", "chunked", "fused", "vocab-parallel"),
    "lora.method": ("lora", "dora"),
    "lora.base_dtype": ("float32", "bfloat16", "float16", "int8", "int4", "nf4"),
    "lora.adapter_dtype": ("float32", "bfloat16", "float16"),
    "offload.parameters": ("none", "cpu", "nvme"),
    "offload.optimizer": ("none", "cpu", "nvme"),
    "offload.activations": ("none", "cpu", "nvme"),
    "parallelism.sharding": ("none", "ddp", "zero1", "zero2", "zero3", "fsdp", "hsdp"),
    "parallelism.pipeline_schedule": ("1f1b", "interleaved-1f1b", "zero-bubble", "gpipe"),
    "parallelism.context_type": ("ring", "all-gather", "ulysses"),
    "framework.name": (
        "textbook",
        "huggingface",
        "megatron",
        "torchtitan",
        "torchtune",
        "litgpt",
        "composer",
        "deepspeed",
        "colossalai",
        "torch",
    ),
    "framework.cuda_graphs": ("none", "per-layer", "full-iteration"),
    "framework.megatron.transformer_impl": ("transformer_engine", "local"),
}
"""Field path -> words. A path that is absent takes any text."""

HUGGING_FACE = ("huggingface", "deepspeed")
"""Frameworks whose jobs run Hugging Face's own libraries around the step: transformers' trainer, TRL, peft."""

PHASES = ("load", "forward", "loss", "backward", "optimizer", "evaluate", "save")
BEFORE_STEP = ("forward", "loss", "backward")
"""Phases that a first step passes before the optimizer makes its states."""

CATEGORIES = (
    "parameters",
    "gradients",
    "master_weights",
    "optimizer_states",
    "activations",
    "logits",
    "temporaries",
    "communication",
    "fragmentation",
    "runtime",
)

ALLOWABLE = ("numerics", "objective", "batch")
"""What a suggestion may alter only when the submitter allows it: number formats, what is minimised, the global batch."""

ALTERS = (*ALLOWABLE, "gpus")
"""What a suggestion may alter beside memory and time; more GPUs need no leave, they are said."""
