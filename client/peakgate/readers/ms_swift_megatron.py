"""What ms-swift's arguments mean over Megatron-LM, where that is certain.

Sources: ms-swift megatron/arguments/{megatron_args,megatron_base_args}.py at 3602360a (August 2026): names are Megatron-LM's own, and the
defaults are ms-swift's: a distributed optimizer, selective recomputation of the attention's core, fused cross entropy, flash attention.
"""

from __future__ import annotations

from peakgate.readers.convert import flag, number, one_of, positive
from peakgate.readers.finetuners.launched import Part, world_of
from peakgate.readers.finetuners.targets import state_targets
from peakgate.readers.finetuners.values import amount, count, not_counted, numbers_only, off, on, say, say_or_default, words
from peakgate.readers.launch import Launch
from peakgate.readers.ms_swift_parts import method, model, other_task, tuning
from peakgate.readers.reading import Reading, Row, Scalar, apply
from peakgate.readers.settings import Settings

OWN = "ms-swift (megatron/arguments/megatron_args.py)"

ROWS = (
    Row("micro_batch_size", "batch.micro_batch_size", positive),
    Row("max_length", "batch.sequence_length", positive),
    Row("tensor_model_parallel_size", "parallelism.tensor", positive),
    Row("pipeline_model_parallel_size", "parallelism.pipeline", positive),
    Row("virtual_pipeline_model_parallel_size", "parallelism.virtual_pipeline", positive),
    Row("context_parallel_size", "parallelism.context", positive),
    Row("expert_model_parallel_size", "parallelism.expert", positive),
    Row("sequence_parallel", "parallelism.sequence_parallel", flag),
    Row(
        "attention_backend",
        "attention.implementation",
        one_of({"flash": "flash", "fused": "flash", "unfused": "eager", "local": "eager", "auto": None}),
    ),
    Row("attention_dropout", "dropout.attention", number),
    Row("hidden_dropout", "dropout.hidden", number),
    Row("overlap_grad_reduce", "framework.megatron.overlap_grad_reduce", flag),
    Row("gradient_accumulation_fusion", "framework.megatron.gradient_accumulation_fusion", flag),
    Row("exp_avg_dtype", "precision.optimizer_states", one_of({"fp32": None, "bf16": "bfloat16", "fp16": "float16", "fp8": "float8"})),
)
NOT_COUNTED = (
    *(
        "freeze_parameters",
        "freeze_parameters_ratio",
        "trainable_parameters",
        "modules_to_save",
        "mtp_num_layers",
        "expert_tensor_parallel_size",
    ),
    *("main_grads_dtype", "main_params_dtype", "fp8_format", "decoder_first_pipeline_num_layers", "decoder_last_pipeline_num_layers"),
)


def sizes(settings: Settings, launch: Launch, reading: Reading) -> None:
    """Sizes and degrees; accumulation is the global batch over the micro-batches of the data degree."""
    apply(ROWS, settings, reading)
    reading.default("batch.micro_batch_size", 1, OWN)
    reading.default("attention.implementation", "flash", OWN)
    packing = settings("packing")
    say_or_default(reading, "batch.packed", on(packing) or not off(settings("padding_free")), packing or settings("padding_free"), OWN)
    say_or_default(reading, "batch.sequence_length_is", "exact" if on(packing) else "cap", packing, OWN)
    world, total = world_of(launch, reading), settings("global_batch_size")
    parts = 1
    for name in ("tensor_model_parallel_size", "pipeline_model_parallel_size", "context_parallel_size"):
        parts *= count(settings(name)) or 1
    if world and world % parts == 0:
        step = (count(settings("micro_batch_size")) or 1) * (world // parts)
        say_or_default(reading, "batch.gradient_accumulation_steps", max((count(total) or 16) // step, 1), total, OWN)


def states(settings: Settings, _: Launch, reading: Reading) -> None:
    """Number formats, the distributed optimizer, and what of it lives on the host."""
    dtype = settings("torch_dtype")
    recipe = "megatron-fp16" if dtype is not None and dtype.text.lower() in ("float16", "fp16") else "megatron-bf16"
    say_or_default(reading, "precision.recipe", recipe, dtype, OWN)
    spread = settings("use_distributed_optimizer")
    say_or_default(reading, "framework.megatron.distributed_optimizer", not off(spread), spread, OWN)
    fused = settings("cross_entropy_loss_fusion")
    say_or_default(reading, "framework.megatron.cross_entropy_fusion", not off(fused), fused, OWN)
    moved, share = settings("optimizer_cpu_offload"), settings("optimizer_offload_fraction")
    if moved is not None and on(moved):
        if share is not None and amount(share) != 1:
            reading.cannot_say(f"optimizer_offload_fraction {share.text[:20]}", share.place)
        else:
            say(reading, "offload.optimizer", "cpu", moved)
    name = settings("optimizer")
    if name is not None and name.text not in ("adam", "sgd", "muon"):
        reading.cannot_say(f"optimizer {name.text[:40]}", name.place)
    elif name is not None:
        say(reading, "optimizer.name", name.text, name)


def recomputation(settings: Settings, _: Launch, reading: Reading) -> None:
    """Megatron-LM's three settings; `block` recomputes the first layers of a stage, `uniform` groups of layers."""
    stated = settings("recompute_granularity")
    mode = stated.text.lower() if stated is not None else "selective"
    if mode not in ("selective", "full", "none"):
        return
    say_or_default(reading, "checkpointing.mode", mode, stated, OWN)
    layers, way = settings("recompute_num_layers"), settings("recompute_method")
    if mode == "full" and layers is not None and count(layers):
        say(reading, "checkpointing.layers" if way is not None and way.text == "block" else "checkpointing.every", count(layers), layers)
    if mode == "selective":
        named = settings("recompute_modules")
        modules: list[Scalar] = [part for word in words(named) for part in word.split()] or ["core_attn"]
        say_or_default(reading, "checkpointing.modules", modules, named, OWN)


def adapters(settings: Settings, _: Launch, reading: Reading) -> None:
    """Adapters; the whole model is trained when nothing is said."""
    kind = settings("tuner_type")
    if tuning(settings, "full") == "full" or kind is None:
        return
    if kind.text.lower() != "lora":
        reading.cannot_say(f"tuner {kind.text[:40]}", kind.place)
        return
    say(reading, "lora.method", "lora", kind)
    apply((Row("lora_rank", "lora.rank", positive), Row("lora_dropout", "lora.dropout", number)), settings, reading)
    reading.default("lora.dropout", 0.05, OWN)
    named = settings("target_modules")
    if named is None or not state_targets(named, reading):
        reading.default("lora.targets", ["all-linear"], OWN)


def objective(settings: Settings, launch: Launch, reading: Reading) -> None:
    """The kind of preference optimisation, with the models that it needs beside the trained one."""
    method(settings, launch, reading, "full")
    not_counted(NOT_COUNTED, settings, reading)
    other_task(settings, reading)
    numbers_only(("global_batch_size", "recompute_num_layers"), settings, reading)


MEGATRON_PARTS: tuple[Part, ...] = (model, sizes, states, recomputation, adapters, objective)
