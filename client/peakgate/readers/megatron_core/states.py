"""Number formats, the optimizer and who holds its states.

Sources: M _add_mixed_precision_args, validate_args; megatron/core/optimizer/optimizer_config.py.
"""

from __future__ import annotations

from peakgate.readers.megatron_core.options import Options
from peakgate.readers.megatron_core.placement import data_degree, model_degree

FLOATS = {
    "fp32": "float32",
    "float32": "float32",
    "torch.float32": "float32",
    "bf16": "bfloat16",
    "bfloat16": "bfloat16",
    "torch.bfloat16": "bfloat16",
    "fp16": "float16",
    "float16": "float16",
    "half": "float16",
    "torch.float16": "float16",
    "torch.half": "float16",
    "fp8": "float8",
    "uint8": "float8",
    "torch.uint8": "float8",
}

FP8_RECIPES = {"delayed": "delayed", "tensorwise": "current", "blockwise": "blockwise", "mxfp8": "mxfp8"}
"""M fp8_recipe: tensorwise is scaling by the tensor's own current maximum."""

OPTIMIZERS = {
    "adam": "adam",
    "adamw": "adamw",
    "fused_adam": "adam",
    "distributed_fused_adam": "adam",
    "mcore_distributed_optim": "adam",
    "sgd": "sgd-momentum",
    "muon": "muon",
    "dist_muon": "muon",
    "lion": "lion",
}
"""M --optimizer; --sgd-momentum is 0.9 by default."""


def read_states(options: Options, world: int | None) -> None:
    """States formats, optimizer, sharding and offload."""
    _recipe(options)
    _fp8(options)
    _precision_aware(options)
    _optimizer(options)
    _sharding(options, world)
    _fsdp(options)
    if options.on("optimizer_cpu_offload"):
        options.state("offload.optimizer", "cpu", "optimizer_cpu_offload")
        share = options.number("optimizer_offload_fraction")
        if share is not None and share < 1:
            options.cannot_say("a part of the optimizer states in the host's memory", "optimizer_offload_fraction")


def _recipe(options: Options) -> None:
    """M validate_args: main gradients are fp32 with --bf16 unless reduced in bf16; with --fp16 they are fp16 unless fp32 is asked for."""
    if options.on("bf16") and options.on("fp16"):
        options.reading.warnings.append(f"both {options.place('bf16')} and {options.place('fp16')} are set: Megatron takes one")
    half = options.on("fp16")
    if options.amp:
        options.state("precision.recipe", options.amp, "bf16", "fp16")
        return
    recipe = "megatron-fp16" if half else "megatron-bf16" if options.on("bf16") else "fp32"
    if recipe == "fp32" and not options.complete:
        return
    options.state("precision.recipe", recipe, "fp16" if half else "bf16" if options.on("bf16") else "")
    if recipe == "fp32":
        return
    fp32 = options.on("accumulate_allreduce_grads_in_fp32", default=not half)
    if options.on("grad_reduce_in_bf16") or not fp32:
        options.state("precision.gradients", "float16" if half else "bfloat16", "grad_reduce_in_bf16", "accumulate_allreduce_grads_in_fp32")


def _fp8(options: Options) -> None:
    formats = ("fp8_format", "fp8_hybrid", "fp8_e4m3")
    legacy = options.on("fp8_hybrid") or options.on("fp8_e4m3")
    if options.word("fp4_format"):
        options.state("precision.compute", "float8", "fp4_format")
        options.state("precision.fp8.recipe", "nvfp4", "fp4_recipe", "fp4_format")
        return
    if not legacy and options.word("fp8_format", "false") == "false":
        return
    options.state("precision.compute", "float8", *formats)
    recipe = options.word("fp8_recipe", "delayed")
    if recipe in FP8_RECIPES:
        options.state("precision.fp8.recipe", FP8_RECIPES[recipe], "fp8_recipe")
    else:
        options.cannot_say(f"the 8-bit recipe {recipe[:40]}", "fp8_recipe")
    if options.on("fp8_param_gather"):
        options.state("precision.fp8.param_gather", True, "fp8_param_gather")
    for name in ("fp8_dot_product_attention", "fp8_multi_head_attention", "fp8_output_proj"):
        if options.on(name):
            options.cannot_say("attention or the output layer in 8 bits", name)


def _precision_aware(options: Options) -> None:
    """Smaller states of TE's FusedAdam; beside bf16 weights only the other half of each fp32 master is kept (store_param_remainders)."""
    if not options.on("use_precision_aware_optimizer"):
        return
    options.state("precision.gradients", _float(options, "main_grads_dtype"), "main_grads_dtype")
    master = _float(options, "main_params_dtype")
    if master in (None, "float32") and options.on("bf16") and options.on("store_param_remainders", default=True):
        options.state("precision.master_weights", "bfloat16", "store_param_remainders", "use_precision_aware_optimizer")
    else:
        options.state("precision.master_weights", master, "main_params_dtype")
    first, second = _float(options, "exp_avg_dtype") or "float32", _float(options, "exp_avg_sq_dtype") or "float32"
    if first == second:
        if first != "float32":
            options.state("precision.optimizer_states", first, "exp_avg_dtype")
    else:
        options.cannot_say(f"moments of two formats ({first}, {second})", "exp_avg_dtype", "exp_avg_sq_dtype")


def _float(options: Options, name: str) -> str | None:
    word = options.word(name)
    if word and word not in FLOATS:
        options.reading.warnings.append(f"{name}: {word[:40]!r} is no format ({options.place(name)})")
    return FLOATS.get(word)


def _optimizer(options: Options) -> None:
    word = options.word("optimizer")
    if not word:
        return
    if word not in OPTIMIZERS:
        options.cannot_say(f"the optimizer {word[:40]}", "optimizer")
        return
    name = OPTIMIZERS[word]
    momentum = options.number("sgd_momentum")
    options.state("optimizer.name", "sgd" if name == "sgd-momentum" and momentum == 0 else name, "optimizer")
    if name in ("muon", "lion") and (word == "dist_muon" or options.on("use_distributed_optimizer")):
        options.cannot_say("an optimizer whose states are spread layer by layer", "optimizer")


def _sharding(options: Options, world: int | None) -> None:
    """The distributed optimizer shards master weights and moments over data × context ranks, or over those of one of its instances."""
    if not options.on("use_distributed_optimizer") or fsdp_name(options):
        return
    options.state("framework.megatron.distributed_optimizer", True, "use_distributed_optimizer")
    options.state("parallelism.sharding", "zero1", "use_distributed_optimizer")
    instances = options.size("num_distributed_optimizer_instances", 1)
    if instances > 1 and world and world % model_degree(options) == 0:
        ranks = data_degree(options, world) * options.size("context_parallel_size", 1)
        options.state("parallelism.shard_degree", max(1, ranks // instances), "num_distributed_optimizer_instances")


FSDP_STRATEGIES = {"no_shard": "ddp", "optim": "zero1", "optim_grads": "zero2", "optim_grads_params": "fsdp"}
"""M --data-parallel-sharding-strategy."""


def fsdp_name(options: Options) -> str:
    """The setting that switches one of the FSDPs on; empty without."""
    return next((name for name in ("use_torch_fsdp2", "use_megatron_fsdp", "use_custom_fsdp") if options.on(name)), "")


def _fsdp(options: Options) -> None:
    name = fsdp_name(options)
    if name == "use_torch_fsdp2":
        options.state("parallelism.sharding", "fsdp", name)
        options.state("framework.fsdp.version", 2, name)
        keeps = options.on("torch_fsdp2_no_reshard_after_forward")
        options.state("framework.fsdp.reshard_after_forward", False if keeps else None, "torch_fsdp2_no_reshard_after_forward")
        options.cannot_say("buffers of FSDP2 around Megatron's layers", name)
    elif name:
        strategy = options.word("data_parallel_sharding_strategy", "optim_grads_params")
        options.state("parallelism.sharding", FSDP_STRATEGIES.get(strategy), "data_parallel_sharding_strategy")
        options.cannot_say("buffers of Megatron-FSDP", name)
