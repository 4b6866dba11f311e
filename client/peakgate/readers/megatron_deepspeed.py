"""Megatron-DeepSpeed: Megatron's flags with --deepspeed, ZeRO by --zero-stage and by DeepSpeed's own JSON.

Sources: Megatron-DeepSpeed at 4efb479d, megatron/arguments.py (_add_zero_args, _add_activation_checkpoint_args), megatron/training.py;
DeepSpeed deepspeed/runtime/config.py, runtime/zero/config.py.
"""

from __future__ import annotations

from peakgate.readers.convert import flag, one_of, positive
from peakgate.readers.launch import Launch
from peakgate.readers.megatron_core.options import Options
from peakgate.readers.reading import Row, apply
from peakgate.readers.settings import Settings

DEVICES = one_of({"cpu": "cpu", "nvme": "nvme", "none": None})
STAGES = one_of({"0": "ddp", "1": "zero1", "2": "zero2", "3": "zero3"})

ROWS = (
    Row("zero_optimization.stage", "parallelism.sharding", STAGES),
    Row("zero_optimization.offload_optimizer.device", "offload.optimizer", DEVICES),
    Row("zero_optimization.offload_param.device", "offload.parameters", DEVICES),
    Row("zero_optimization.reduce_bucket_size", "framework.zero.reduce_bucket_size", positive),
    Row("zero_optimization.allgather_bucket_size", "framework.zero.allgather_bucket_size", positive),
    Row("zero_optimization.overlap_comm", "framework.zero.overlap_comm", flag),
    Row("zero_optimization.contiguous_gradients", "framework.zero.contiguous_gradients", flag),
    Row("zero_optimization.stage3_max_live_parameters", "framework.zero.max_live_parameters", positive),
    Row("zero_optimization.stage3_prefetch_bucket_size", "framework.zero.prefetch_bucket_size", positive),
    Row("zero_optimization.stage3_param_persistence_threshold", "framework.zero.param_persistence_threshold", positive),
    Row("train_micro_batch_size_per_gpu", "batch.micro_batch_size", positive),
    Row("gradient_accumulation_steps", "batch.gradient_accumulation_steps", positive),
)

UNKNOWN = -1
"""The stage is in a file that is not at hand."""

MIXED_LAYERS = "every second layer is routed (--expert-interval)"


def is_deepspeed(options: Options) -> bool:
    """Whether DeepSpeed's engine runs the model."""
    return options.on("deepspeed")


def read_deepspeed(options: Options, launch: Launch, world: int | None) -> None:
    """States what DeepSpeed decides; its JSON is what the engine goes by, the flags what Megatron builds."""
    config = _config(options, launch)
    _precision(options, config)
    if world is None and config("gradient_accumulation_steps") is not None:
        options.reading.fields.pop("batch.gradient_accumulation_steps", None)
    if config("zero_optimization.stage") is None:
        stage = options.count("zero_stage")
        if stage is None and options("ds_config") is not None and not config.leaves:
            stage = UNKNOWN
        names = {0: "ddp", 1: "zero1", 2: "zero2", 3: "zero3"}
        options.state("parallelism.sharding", names.get(1 if stage is None else stage), "zero_stage")
    elif (stage := options.count("zero_stage")) is not None and config("zero_optimization.stage") is not None:
        _compare(options, config, stage)
    apply(ROWS, config, options.reading)
    _offload(options)
    degree = options.whole("ds_sequence_parallel_size") or 1
    if degree > 1:
        options.state("parallelism.context", degree, "ds_sequence_parallel_size")
        options.state("parallelism.context_type", "ulysses", "ds_sequence_parallel_size")
    if options.on("partition_activations") and options.size("tensor_model_parallel_size", 1) > 1:
        options.cannot_say("stored inputs spread over tensor parallel ranks", "partition_activations")
    _experts(options)
    _stages(options)
    word = options.word("optimizer", "adam")
    options.state("optimizer.name", {"adam": "adamw", "sgd": "sgd-momentum"}.get(word), "optimizer")
    options.reading.default("attention.implementation", "eager", "Megatron-DeepSpeed")  # without --use-flash-attn


def _config(options: Options, launch: Launch) -> Settings:
    named = options("ds_config")
    return Settings() if named is None or named.value is True else launch.settings_of(named.text, options.reading)


def _precision(options: Options, config: Settings) -> None:
    """The engine keeps fp32 masters of 16-bit weights; gradients are 16-bit unless data_types says otherwise."""
    for short in ("bf16", "fp16"):
        enabled = config(f"{short}.enabled")
        if options.on(short) or (enabled is not None and enabled.text == "true"):
            place = options.place(short) if options(short) is not None or enabled is None else enabled.place
            options.reading.state("precision.recipe", f"deepspeed-{short}", place)
            break
    else:
        options.state("precision.recipe", "fp32", "")
    kind = config("data_types.grad_accum_dtype")
    if kind is not None and kind.text in ("fp32", "float32"):
        options.reading.state("precision.gradients", "float32", kind.place)


def _compare(options: Options, config: Settings, stage: int) -> None:
    stated = config("zero_optimization.stage")
    if stated is not None and stated.text != str(stage):
        options.reading.warnings.append(
            f"zero stage: {stage} ({options.place('zero_stage')}) and {stated.text} ({stated.place}) contradict; the second is taken"
        )


def _offload(options: Options) -> None:
    if options.on("cpu_optimizer"):
        options.state("offload.optimizer", "cpu", "cpu_optimizer")
    device = options.word("remote_device", "none")
    if device in ("cpu", "nvme"):
        options.state("offload.parameters", device, "remote_device")
    if options.on("checkpoint_in_cpu"):
        options.state("offload.activations", "cpu", "checkpoint_in_cpu")


def _stages(options: Options) -> None:
    """--pp-partition-method counts the table of words at both ends as layers, so that the first and last stage have one fewer
    (DeepSpeed runtime/pipe/module.py: _partition_layers, type:regex; bigscience's Megatron-DeepSpeed: type:transformer|embedding)."""
    layers, stages, method = options.whole("num_layers"), options.size("pipeline_model_parallel_size", 1), options("pp_partition_method")
    if method is None or "embedding" not in method.text or stages < 2 or not layers:
        return
    each, rest = divmod(layers + 2, stages)
    if rest or stages > layers:
        options.reading.warnings.append(f"{method.place}: stages of {layers} layers over {stages} stages are not worked out")
        return
    options.state("parallelism.stage_layers", [each - 1, *[each] * (stages - 2), each - 1], "pp_partition_method")


def _experts(options: Options) -> None:
    """--expert-interval is 2 by default: the other layers are dense; --topk is 1."""
    if "model.transformer.experts" not in options.reading.fields:
        return
    if options.size("expert_interval", 2) > 1:
        options.cannot_say(MIXED_LAYERS, "expert_interval")
    if options("moe_router_topk") is None:
        options.reading.fields.pop("model.transformer.experts_per_token", None)
        options.state("model.transformer.experts_per_token", 1, "moe_router_topk")
    if options.word("mlp_type") == "residual":
        options.cannot_say("a dense layer beside each mixture of experts", "mlp_type")
