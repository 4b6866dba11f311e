"""LLaMA-Factory's second generation of configs: `model` with sections for adapters, kernels, quantisation and distribution.

Sources (LLaMA-Factory at ff6d4d12, src/llamafactory/v1): config/{model,training}_args.py (names and defaults), core/base_trainer.py
(checkpoints without re-entrance, torch.optim.AdamW, no autocast), core/model_engine.py (full tuning is float32, adapters leave the base in
its file's format), core/utils/batching.py (micro-batches of a global batch), plugins/model_plugins/{peft,quantization,kernels}*,
plugins/trainer_plugins/distributed/fsdp2.py (bf16 gathers in bfloat16; reshards and keeps shards on the card unless told otherwise).
"""

from __future__ import annotations

from peakgate.readers.convert import number, positive
from peakgate.readers.finetuners.attention import attention
from peakgate.readers.finetuners.launched import world_of
from peakgate.readers.finetuners.liger import state_liger
from peakgate.readers.finetuners.models import state_model
from peakgate.readers.finetuners.targets import state_targets
from peakgate.readers.finetuners.values import count, not_counted, off, on, say, say_or_default
from peakgate.readers.finetuners.zero import state_zero, zero_settings
from peakgate.readers.finetuners.zero_files import LLAMA_FACTORY
from peakgate.readers.launch import Launch
from peakgate.readers.reading import Reading, Row, apply
from peakgate.readers.settings import Settings

OWN = "LLaMA-Factory (v1)"
SECTIONS = ("dist_config", "peft_config", "kernel_config", "quant_config", "optim_config")
MARKS = ("model_class", "micro_batch_size", *(f"{section}.name" for section in SECTIONS))
VERBS = {"sft": "sft", "dpo": "dpo", "rm": "reward"}
"""Commands that train -> method."""

BATCH = (
    Row("micro_batch_size", "batch.micro_batch_size", positive),
    Row("cutoff_len", "batch.sequence_length", positive),
    Row("flash_attn", "attention.implementation", attention),
)
LORA = (Row("peft_config.r", "lora.rank", positive), Row("peft_config.lora_dropout", "lora.dropout", number))
NOT_COUNTED = ("peft_config.modules_to_save", "peft_config.adapter_name_or_path", "mp_replicate_size")


def is_second(settings: Settings) -> bool:
    """Whether a config is one of the second generation."""
    named = settings("model") is not None and settings("model_name_or_path") is None and settings("train_dataset") is not None
    return named and any(settings(mark) is not None for mark in MARKS)


def read_second(settings: Settings, launch: Launch, verb: str, reading: Reading) -> None:
    """What a config says; `verb`: the command, empty for a file by itself."""
    state_model(settings("model"), launch, reading)
    _method(settings, verb, reading)
    _batch(settings, launch, reading)
    _distribution(settings, launch, reading)
    _adapters(settings, reading)
    _kernels(settings, reading)
    not_counted(NOT_COUNTED, settings, reading)


def _method(settings: Settings, verb: str, reading: Reading) -> None:
    """The command's; of a file by itself fine-tuning, unless it has a setting of preferences."""
    loss = settings.first("pref_loss", "pref_beta", "pref_ftx", "simpo_gamma")
    name = VERBS.get(verb) or ("dpo" if loss is not None else "sft")
    say_or_default(reading, "method.name", name, loss if not verb else None, OWN)
    kind = settings("pref_loss")
    if name == "dpo" and kind is not None and kind.text == "simpo":
        reading.cannot_say("pref_loss: simpo", kind.place)
    elif name == "dpo" and kind is not None and kind.text == "orpo":
        reading.fields.pop("method.name")
        say(reading, "method.name", "orpo", kind)
    elif name == "dpo":
        reference = "adapter" if _tuning(settings) == "lora" else "full"
        reading.default("method.reference", reference, f"{OWN}: dpo_trainer.py")


def _batch(settings: Settings, launch: Launch, reading: Reading) -> None:
    apply(BATCH, settings, reading)
    reading.default("batch.micro_batch_size", 1, f"{OWN}: micro_batch_size")
    reading.default("batch.sequence_length", 2048, f"{OWN}: cutoff_len")
    reading.default("attention.implementation", "sdpa", f"{OWN}: flash_attn")
    strategy = settings("batching_strategy")
    word = strategy.text.strip().lower() if strategy is not None else "normal"
    if word not in ("normal", "padding_free") and strategy is not None:
        reading.cannot_say(f"batching_strategy: {strategy.text[:40]}", strategy.place)
    say_or_default(reading, "batch.packed", word == "padding_free", strategy, f"{OWN}: batching_strategy")
    reading.default("batch.sequence_length_is", "cap", f"{OWN}: cutoff_len")
    context, whole, world = settings("cp_size"), settings("global_batch_size"), world_of(launch, reading)
    ranks = count(settings("dp_size")) or world // max(count(context), 1)
    micro = reading.get("batch.micro_batch_size")
    if whole is None:
        reading.default("batch.gradient_accumulation_steps", 1, f"{OWN}: global_batch_size")
    elif ranks and count(whole) and isinstance(micro, int):
        say(reading, "batch.gradient_accumulation_steps", max(count(whole) // (micro * ranks), 1), whole)
    if context is not None and count(context) > 1:
        say(reading, "parallelism.context", count(context), context)
        say_or_default(reading, "parallelism.context_type", "ulysses", settings("cp_mode"), f"{OWN}: cp_mode")


def _tuning(settings: Settings) -> str:
    kind = settings("peft_config.name")
    return kind.text.strip().lower() if kind is not None else "full"


def _distribution(settings: Settings, launch: Launch, reading: Reading) -> None:
    """FSDP 2 or DeepSpeed where a section names it; without one the weights' own format computes, without autocast."""
    kind, half = settings("dist_config.name"), settings("bf16")
    full, bf16 = _tuning(settings) != "lora", not off(half)
    word = kind.text.strip().lower() if kind is not None else ""
    if word == "deepspeed" and (path := settings("dist_config.config_file")) is not None:
        zero = zero_settings(path, launch, reading, LLAMA_FACTORY)
        if zero is not None:
            state_zero(zero, reading, half="bf16" if bf16 else "", adapters=not full)
    elif word == "fsdp2" and kind is not None:
        say(reading, "parallelism.sharding", "fsdp", kind)
        say(reading, "framework.fsdp.version", 2, kind)
        again = settings("dist_config.reshard_after_forward")
        say_or_default(reading, "framework.fsdp.reshard_after_forward", not off(again), again, f"{OWN}: fsdp2.py")
        if (moved := settings("dist_config.offload_params")) is not None and on(moved):
            say(reading, "offload.parameters", "cpu", moved)
            say(reading, "offload.optimizer", "cpu", moved)
    elif kind is not None:
        reading.cannot_say(f"dist_config {kind.text[:40]}", kind.place)
    if "precision.recipe" not in reading.fields:
        recipe = ("fsdp-bf16" if word == "fsdp2" and bf16 else "fp32") if full else "bf16"
        say_or_default(reading, "precision.recipe", recipe, half if full and word == "fsdp2" else None, f"{OWN}: model_engine.py")
    stated = settings("enable_activation_checkpointing")
    say_or_default(reading, "checkpointing.mode", "none" if off(stated) else "full", stated, f"{OWN}: enable_activation_checkpointing")
    if not off(stated):
        reading.default("checkpointing.reentrant", False, f"{OWN}: base_trainer.py")


def _adapters(settings: Settings, reading: Reading) -> None:
    kind = settings("peft_config.name")
    if _tuning(settings) == "lora":
        dora = settings("peft_config.use_dora")
        say_or_default(reading, "lora.method", "dora" if on(dora) else "lora", dora if on(dora) else kind, OWN)
        apply(LORA, settings, reading)
        reading.default("lora.rank", 8, f"{OWN}: peft.py")
        reading.default("lora.dropout", 0.05, f"{OWN}: peft.py")
        named = settings("peft_config.target_modules")
        if named is None or not state_targets(named, reading):
            reading.default("lora.targets", ["all-linear"], f"{OWN}: peft.py")
    elif kind is not None:
        reading.cannot_say(f"peft_config {kind.text[:40]}", kind.place)
    way, bits = settings("quant_config.name"), settings("quant_config.quantization_bit")
    if way is None or (bits is None and way.text == "auto"):
        return
    size = count(bits) if bits is not None else 4
    if size not in (4, 8) or way.text not in ("bnb", "auto"):
        reading.cannot_say(f"quant_config {way.text[:40]}", way.place)
        return
    four = settings("quant_config.quantization_type")
    word = "int8" if size == 8 else "int4" if four is not None and four.text == "fp4" else "nf4"
    say(reading, "lora.base_dtype", word, bits or way)
    if size == 4:
        double = settings("quant_config.double_quantization")
        say_or_default(reading, "lora.double_quant", not off(double), double, f"{OWN}: quantization.py")


def _kernels(settings: Settings, reading: Reading) -> None:
    """`auto` changes nothing on these cards; Liger's fused loss is of no use, as the trainer asks for logits."""
    kernels, optimizer = settings("kernel_config.name"), settings("optim_config.name")
    for word in kernels.text.split(",") if kernels is not None else ():
        if word.strip() == "liger_kernel" and kernels is not None:
            state_liger(kernels, reading, fused_loss=False)
        elif word.strip() not in ("auto", "") and kernels is not None:
            reading.cannot_say(f"the kernel {word.strip()[:40]}", kernels.place)
    if optimizer is None:
        reading.default("optimizer.name", "adamw", f"{OWN}: base_trainer.py")
        reading.default("optimizer.implementation", "foreach", f"{OWN}: torch.optim.AdamW")
    elif optimizer.text.strip().lower() == "muon":
        say(reading, "optimizer.name", "muon", optimizer)
    else:
        reading.cannot_say(f"optim_config {optimizer.text[:40]}", optimizer.place)
