"""How each format says what a suggestion changes: path of the job document -> the settings to write; an empty one needs none.

Sources: the readers of the same names, which say where each setting is declared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from peakgate.readers.edits import Scalar

Settings = dict[str, Scalar]
Write = Callable[[Scalar], "Settings | None"]
"""Of a value: setting -> value to write; None where the format cannot say it."""


def key(name: str) -> Write:
    """The same value under another name."""
    return lambda value: {name: value}


def words(**settings: Mapping[Scalar, Settings]) -> Write:
    """Settings by the value's word."""
    (table,) = settings.values()
    return lambda value: table.get(value if isinstance(value, str | int | float | bool) else ",".join(value))


def follows(_: Scalar) -> Settings:
    """It follows from other settings, which keep the global batch."""
    return {}


def on(name: str, value: Scalar = True) -> Write:  # noqa: FBT002 - a setting's value
    """A setting to switch on."""
    return lambda wanted: {name: value} if wanted else None


def kernels(**names: str) -> Write:
    """A switch for each fused kernel."""
    return lambda value: {names[each]: True for each in value if each in names} if isinstance(value, list) else None


HUGGING_FACE: dict[str, Write] = {
    "batch.micro_batch_size": key("per_device_train_batch_size"),
    "batch.gradient_accumulation_steps": key("gradient_accumulation_steps"),
    "checkpointing.mode": words(of={"full": {"gradient_checkpointing": True}, "none": {"gradient_checkpointing": False}}),
    "optimizer.implementation": words(of={"fused": {"optim": "adamw_torch_fused"}}),
    "optimizer.name": words(of={"adamw-8bit": {"optim": "adamw_bnb_8bit"}, "paged-adamw-8bit": {"optim": "paged_adamw_8bit"}}),
    "loss.implementation": words(of={"fused": {"use_liger_kernel": True}}),
    "framework.fused_kernels": on("use_liger_kernel"),
    "attention.implementation": words(of={"flash": {"attn_implementation": "flash_attention_2"}, "sdpa": {"attn_implementation": "sdpa"}}),
}

WRITES: dict[str, dict[str, Write]] = {
    "megatron": {
        "batch.micro_batch_size": key("micro_batch_size"),
        "batch.gradient_accumulation_steps": follows,
        "checkpointing.mode": words(
            of={
                "full": {"recompute_granularity": "full", "recompute_method": "uniform", "recompute_num_layers": 1},
                "selective": {"recompute_granularity": "selective"},
            }
        ),
        "checkpointing.modules": key("recompute_modules"),
        "checkpointing.layers": lambda value: {"recompute_method": "block", "recompute_num_layers": value},
        "checkpointing.every": key("recompute_num_layers"),
        "attention.implementation": words(of={"flash": {"attention_backend": "flash"}}),
        "framework.megatron.distributed_optimizer": on("use_distributed_optimizer"),
        "framework.megatron.cross_entropy_fusion": on("cross_entropy_loss_fusion"),
        "parallelism.tensor": key("tensor_model_parallel_size"),
        "parallelism.sequence_parallel": on("sequence_parallel"),
        "parallelism.pipeline": key("pipeline_model_parallel_size"),
        "parallelism.context": key("context_parallel_size"),
        "parallelism.expert": key("expert_model_parallel_size"),
    },
    "huggingface": HUGGING_FACE,
    "trl": HUGGING_FACE,
    "ms-swift": HUGGING_FACE,
    "deepspeed": {
        "batch.micro_batch_size": key("train_micro_batch_size_per_gpu"),
        "batch.gradient_accumulation_steps": key("gradient_accumulation_steps"),
        "parallelism.sharding": words(of={f"zero{stage}": {"zero_optimization.stage": stage} for stage in (1, 2, 3)}),
        "offload.optimizer": words(of={"cpu": {"zero_optimization.offload_optimizer.device": "cpu"}}),
        "offload.parameters": words(of={"cpu": {"zero_optimization.offload_param.device": "cpu"}}),
    },
    "torchtitan": {
        "batch.micro_batch_size": key("training.local_batch_size"),
        "batch.gradient_accumulation_steps": follows,
        "checkpointing.mode": key("activation_checkpoint.mode"),
        "parallelism.tensor": key("parallelism.tensor_parallel_degree"),
        "parallelism.sequence_parallel": follows,
        "parallelism.pipeline": key("parallelism.pipeline_parallel_degree"),
        "parallelism.context": key("parallelism.context_parallel_degree"),
        "parallelism.expert": key("parallelism.expert_parallel_degree"),
    },
    "torchtune": {
        "batch.micro_batch_size": key("batch_size"),
        "batch.gradient_accumulation_steps": key("gradient_accumulation_steps"),
        "checkpointing.mode": words(
            of={"full": {"enable_activation_checkpointing": True}, "none": {"enable_activation_checkpointing": False}}
        ),
        "offload.activations": words(of={"cpu": {"enable_activation_offloading": True}}),
        "offload.parameters": words(of={"cpu": {"fsdp_cpu_offload": True}}),
        "optimizer.implementation": words(of={"fused": {"optimizer.fused": True}}),
        "optimizer.in_backward": on("optimizer_in_bwd"),
    },
    "litgpt": {"batch.micro_batch_size": key("train.micro_batch_size"), "batch.gradient_accumulation_steps": follows},
    "axolotl": {
        "batch.micro_batch_size": key("micro_batch_size"),
        "batch.gradient_accumulation_steps": key("gradient_accumulation_steps"),
        "checkpointing.mode": words(of={"full": {"gradient_checkpointing": True}, "none": {"gradient_checkpointing": False}}),
        "optimizer.implementation": words(of={"fused": {"optimizer": "adamw_torch_fused"}}),
        "optimizer.name": words(of={"adamw-8bit": {"optimizer": "adamw_bnb_8bit"}, "paged-adamw-8bit": {"optimizer": "paged_adamw_8bit"}}),
        "loss.implementation": words(of={"fused": {"liger_fused_linear_cross_entropy": True}}),
        "framework.fused_kernels": kernels(rms_norm="liger_rms_norm", swiglu="liger_glu_activation", rope="liger_rope"),
        "attention.implementation": words(of={"flash": {"flash_attention": True}, "sdpa": {"sdp_attention": True}}),
    },
    "llamafactory": {
        **HUGGING_FACE,
        "checkpointing.mode": words(
            of={"full": {"disable_gradient_checkpointing": False}, "none": {"disable_gradient_checkpointing": True}}
        ),
        "loss.implementation": words(of={"fused": {"enable_liger_kernel": True}}),
        "framework.fused_kernels": on("enable_liger_kernel"),
        "attention.implementation": words(of={"flash": {"flash_attn": "fa2"}, "sdpa": {"flash_attn": "sdpa"}}),
    },
    "composer": {
        "batch.micro_batch_size": key("device_train_microbatch_size"),
        "batch.gradient_accumulation_steps": follows,
        "checkpointing.mode": words(of={"full": {"fsdp_config.activation_checkpointing": True}}),
    },
    "nemo": {
        "batch.micro_batch_size": key("model.micro_batch_size"),
        "batch.gradient_accumulation_steps": follows,
        "parallelism.tensor": key("model.tensor_model_parallel_size"),
        "parallelism.pipeline": key("model.pipeline_model_parallel_size"),
        "parallelism.sequence_parallel": on("model.sequence_parallel"),
        "checkpointing.mode": words(of={mode: {"model.activations_checkpoint_granularity": mode} for mode in ("full", "selective")}),
    },
}
