"""The last reader: `torchrun train.py` with flags that many training loops share. Only what a name makes certain is said.

A flag is taken for what its name says in transformers (`training_args.py`), torchtitan and nanoGPT; everything else is left open.
"""

from __future__ import annotations

import re

from peakgate.readers.accelerate import accelerate_settings
from peakgate.readers.huggingface import only_judges, read_placement
from peakgate.readers.launch import Launch
from peakgate.readers.mixed_precision import DTYPES
from peakgate.readers.named_model import NAMES, name_model
from peakgate.readers.not_training import state_other_method, trains
from peakgate.readers.peft import base_of, read_adapters
from peakgate.readers.place import Place
from peakgate.readers.plain_flags import (
    BATCHES,
    MICRO_BATCHES,
    SEQUENCES,
    state_checkpoints,
    state_first,
    state_micro_batch,
    state_sequence,
)
from peakgate.readers.reading import Reading
from peakgate.readers.settings import Settings
from peakgate.readers.stated import StatedReader
from peakgate.readers.switches import switched_on
from peakgate.readers.trainer import OPTIMIZERS, state_attention
from peakgate.readers.trainer_settings import settings_of

OF_TRANSFORMERS = (
    "model_name_or_path",
    "pretrained_model_name_or_path",
    "attn_implementation",
    "load_in_4bit",
    "load_in_8bit",
    "lora_r",
    "use_peft",
)
"""Flags of loops around transformers' models."""

STEPS = (
    "gradient_accumulation_steps",
    "grad_accum_steps",
    "gradient_accumulation",
    "accumulation_steps",
    "grad_accum",
    "accumulate_grad_batches",
)


class Plain:
    """Any script with a model's name and sizes among its flags."""

    name = "plain"

    def recognises(self, launch: Launch) -> bool:
        """A program with a model, its own or one that the submitter names beside it, and with a batch or a sequence."""
        if not launch.words or not trains(launch.program) or not trains(_verb(launch)):
            return False
        settings = settings_of(launch, Reading())
        if only_judges(launch, settings):
            return False
        named = any(settings(name) is not None for name in NAMES) or StatedReader().recognises(launch)
        return named and any(settings(name) is not None for name in (*MICRO_BATCHES, *BATCHES, *SEQUENCES))

    def read(self, launch: Launch) -> Reading:
        """What the flags say."""
        reading = Reading()
        settings = settings_of(launch, reading)
        accelerated = "accelerate" in launch.launcher_flags
        around_transformers = accelerated or any(settings(name) is not None for name in OF_TRANSFORMERS)
        reading.default("framework.name", "huggingface" if around_transformers else "torch", "the script's flags")
        name_model(settings, launch.files, reading)
        state_other_method(launch, settings, reading)
        state_micro_batch(settings, reading)
        state_sequence(settings, reading)
        state_first(settings, STEPS, "batch.gradient_accumulation_steps", reading)
        state_checkpoints(settings, reading)
        state_attention(settings, reading)
        if accelerated:
            read_placement(settings, accelerate_settings(launch, reading), launch, reading)
        else:
            _sharding(settings, reading)
            _precision(settings, reading)
        _optimizer(settings, reading)
        _compile(settings, reading)
        read_adapters(settings, reading, dtype="")
        _quantised(settings, reading)
        return reading


def _compile(settings: Settings, reading: Reading) -> None:
    if place := switched_on(settings, "compile", "torch_compile", "use_compile"):
        reading.state("framework.compile", value=True, place=place)


def _precision(settings: Settings, reading: Reading) -> None:
    """A switch of its own is autocast, or FSDP's mixed precision; a format is the parameters'. Autocast on a GPU that is given no format
    takes float16 (torch/amp/autocast_mode.py: torch.get_autocast_dtype)."""
    sharded = reading.get("parallelism.sharding") == "fsdp"
    for word in ("bf16", "fp16"):
        if place := switched_on(settings, word):
            _mixed(word, place, reading, sharded=sharded)
            return
    mixed, dtype = settings.first("mixed_precision", "amp_dtype", "autocast"), settings("dtype")
    if mixed is not None and (word := {"bfloat16": "bf16", "float16": "fp16"}.get(DTYPES.get(mixed.text.lower(), ""), "")):
        _mixed(word, mixed.place, reading, sharded=sharded)
    elif dtype is not None:
        found = DTYPES.get(dtype.text.lower().removeprefix("torch."), "")
        if found == "float16":
            reading.warnings.append(
                f"precision.recipe: whether {dtype.text} ({dtype.place}) is autocast's or the parameters' format is not said"
            )
        elif found:
            reading.state("precision.recipe", "bf16" if found == "bfloat16" else "fp32", dtype.place)
    elif place := switched_on(settings, "amp", "use_amp"):
        _mixed("fp16", place, reading, sharded=sharded)


def _mixed(word: str, place: Place, reading: Reading, *, sharded: bool) -> None:
    """torch FullyShardedDataParallel: MixedPrecision casts the gathered weights, autocast the operands."""
    reading.state("precision.recipe", "fsdp-bf16" if sharded else f"amp-{word}", place)
    if sharded and word == "fp16":
        reading.state("precision.compute", "float16", place)


def _optimizer(settings: Settings, reading: Reading) -> None:
    """Names that torch or transformers have."""
    stated = settings.first("optim", "optimizer", "optimizer_type", "optimizer_name", "opt")
    word = stated.text.strip().lower() if stated is not None else ""
    known = {"adamw": "adamw", "adam": "adam", "adafactor": "adafactor", "lion": "lion", "muon": "muon", "adamw8bit": "adamw-8bit"}
    name = known.get(word) or (OPTIMIZERS[word].name if word in OPTIMIZERS else "")
    if stated is not None and name and word != "sgd":
        reading.state("optimizer.name", name, stated.place)
        if word in OPTIMIZERS and OPTIMIZERS[word].implementation:
            reading.state("optimizer.implementation", OPTIMIZERS[word].implementation, stated.place)
        elif place := switched_on(settings, "fused", "fused_adam", "use_fused_adamw"):
            reading.state("optimizer.implementation", "fused", place)


def _verb(launch: Launch) -> str:
    """The word behind the program of a command line tool; empty where a flag or a path stands there."""
    text = launch.words[1].text if len(launch.words) > 1 else ""
    return text if re.fullmatch(r"[a-z]{2,20}", text) else ""


def _sharding(settings: Settings, reading: Reading) -> None:
    place: Place | None = switched_on(settings, "fsdp", "use_fsdp", "enable_fsdp", "fsdp2", "use_fsdp2")
    if place is not None:
        reading.state("parallelism.sharding", "fsdp", place)
    elif place := switched_on(settings, "ddp", "use_ddp"):
        reading.state("parallelism.sharding", "ddp", place)


def _quantised(settings: Settings, reading: Reading) -> None:
    """A quantised base without adapters is trained in no way that is known."""
    base = base_of(settings)
    if base.place is not None and reading.get("lora.rank") is None:
        reading.cannot_say("a quantised model without adapters", base.place)
