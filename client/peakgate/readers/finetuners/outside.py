"""What `accelerate launch` was told beside a trainer's own config: FSDP, DeepSpeed, degrees, a compiler; the trainer's own wins."""

from __future__ import annotations

from peakgate.readers.accelerate import (
    DDP,
    DEEPSPEED,
    FSDP,
    MEGATRON,
    accelerate_settings,
    deepspeed_settings,
    kind_of,
    state_compile,
    state_fsdp,
    state_parallelism,
)
from peakgate.readers.finetuners.zero import state_zero
from peakgate.readers.launch import Launch
from peakgate.readers.reading import Reading


def half_outside(launch: Launch) -> str:
    """bf16 or fp16 where accelerate says it (transformers training_args.py: ACCELERATE_MIXED_PRECISION holds without a switch)."""
    stated = accelerate_settings(launch, Reading())("mixed_precision")
    word = stated.text.strip().lower() if stated is not None else ""
    return word if word in ("bf16", "fp16") else ""


def state_outside(launch: Launch, reading: Reading, *, half: str, adapters: bool) -> None:
    """States how accelerate distributes. `half`: bf16, fp16 or empty, the trainer's own; `adapters`: whether they alone are trained."""
    outside = accelerate_settings(launch, reading)
    kind, place = kind_of(outside)
    state_compile(outside, reading)
    if place is None:
        return
    if kind == FSDP:
        state_fsdp(outside, reading, place)
        state_parallelism(outside, reading)
    elif kind == DEEPSPEED:
        state_zero(deepspeed_settings(outside, launch, reading), reading, half=half, adapters=adapters)
    elif kind == MEGATRON:
        reading.cannot_say("Megatron-LM's plugin of accelerate", place)
    elif kind == DDP:
        reading.state("parallelism.sharding", "ddp", place)
