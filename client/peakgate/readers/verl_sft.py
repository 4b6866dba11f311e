"""verl's two fine-tuning trainers: the older on FSDP alone, the newer on an engine.

Sources: verl trainer/config/{sft_trainer,sft_trainer_engine}.yaml; trainer/fsdp_sft_trainer.py (flash attention, use_reentrant=False,
micro-batches of a rank's part of the batch), trainer/sft_trainer.py.
"""

from __future__ import annotations

from peakgate.readers.convert import positive
from peakgate.readers.finetuners.launched import world_of
from peakgate.readers.finetuners.models import state_model
from peakgate.readers.finetuners.values import count, numbers_only, off, on, say, say_or_default
from peakgate.readers.launch import Launch
from peakgate.readers.place import DEFAULT, Place
from peakgate.readers.reading import Reading, Row, apply
from peakgate.readers.settings import Settings
from peakgate.readers.verl_fsdp import OWN, state_engine, state_module, state_optimizer


def read_sft(settings: Settings, launch: Launch, reading: Reading, *, engine: bool) -> None:
    """States a fine-tuning run; `engine`: the newer trainer."""
    name = settings.first("model.partial_pretrain", "model.path")
    reading.state("framework.name", "huggingface", name.place if name else Place(kind=DEFAULT, key=OWN))
    state_model(name, launch, reading)
    world = world_of(launch, reading)
    backend = settings("engine") or settings("engine.strategy")
    if backend is not None and backend.text in ("megatron", "veomni"):
        reading.cannot_say(f"engine {backend.text}", backend.place)
    section = settings.under("engine") if engine else settings.under("model.fsdp_config")
    strategy = settings("model.strategy") or settings("engine.strategy")
    version = 1 if engine else 2
    state_engine(section, reading, strategy=strategy.text if strategy is not None else "", world=world, version=version)
    if (moved := section.first("cpu_offload", "offload_params")) is not None and on(moved) and not engine:
        say(reading, "offload.parameters", "cpu", moved)
        say(reading, "offload.optimizer", "cpu", moved)
    state_module(settings.under("model"), reading, loss=not engine)
    state_optimizer(settings.under("optim"), reading)
    reading.default("attention.implementation", "flash", "verl (trainer/fsdp_sft_trainer.py: flash_attention_2)")
    context = settings.first("ulysses_sequence_parallel_size", "engine.ulysses_sequence_parallel_size")
    if context is not None and count(context) > 1:
        say(reading, "parallelism.context", count(context), context)
        say(reading, "parallelism.context_type", "ulysses", context)
    _batch(settings, reading, engine=engine, ranks=world // max(count(context), 1))
    numbers_only(
        ("data.train_batch_size", "data.micro_batch_size_per_gpu", "data.max_token_len_per_gpu", "model.lora_rank"), settings, reading
    )


def _batch(settings: Settings, reading: Reading, *, engine: bool, ranks: int) -> None:
    dynamic = settings("data.use_dynamic_bsz")
    if engine and not off(dynamic):
        tokens = settings("data.max_token_len_per_gpu")
        say_or_default(reading, "batch.sequence_length", count(tokens) or 8192, tokens, f"{OWN}/sft_trainer_engine.yaml")
        say_or_default(reading, "batch.micro_batch_size", 1, dynamic, f"{OWN}/sft_trainer_engine.yaml: use_dynamic_bsz")
        reading.default("batch.packed", True, f"{OWN}/sft_trainer_engine.yaml: pad_mode")
        reading.default("batch.sequence_length_is", "cap", f"{OWN}/sft_trainer_engine.yaml: max_token_len_per_gpu")
        return
    micro = settings.first("data.micro_batch_size_per_gpu", "data.micro_batch_size")
    apply((Row("data.max_length", "batch.sequence_length", positive),), settings, reading)
    reading.default("batch.sequence_length", 1024, f"{OWN}/sft_trainer.yaml")
    say_or_default(reading, "batch.micro_batch_size", count(micro) or 4, micro, f"{OWN}/sft_trainer.yaml")
    padding = settings("use_remove_padding")
    say_or_default(reading, "batch.packed", on(padding) or engine, padding, f"{OWN}/sft_trainer.yaml: use_remove_padding")
    reading.default("batch.sequence_length_is", "cap", f"{OWN}/sft_trainer.yaml: max_length")
    total, size = settings("data.train_batch_size"), count(micro) or 4
    if ranks:
        steps = max((count(total) or 256) // ranks // size, 1)
        say_or_default(reading, "batch.gradient_accumulation_steps", steps, total, f"{OWN}/sft_trainer.yaml: train_batch_size")
