"""A loop with Hugging Face Accelerate.

    training = watch(accelerator, model, optimizer=optimizer)
    for batch in training.batches(loader):
        with accelerator.accumulate(model):
            ...

Source: accelerate/accelerator.py (mixed_precision, gradient_accumulation_steps, num_processes; sync_gradients: whether this batch ends in
an optimizer step).
"""

from __future__ import annotations

from typing import Any

from peakgate.client.torch.batches import Shape
from peakgate.client.torch.loop import Loop

AUTOCAST = {"bf16": "bfloat16", "fp16": "float16"}


def watch(
    accelerator: Any,
    model: object,
    *,
    optimizer: object | None = None,
    micro_batch_size: int = 0,
    sequence_length: int = 0,
    gpu: str = "",
    **options: Any,
) -> Loop:
    """Watches a loop over this model, prepared or not yet. The sizes default to those of the first batch.

    `options`: predict, on_reject, time_limit_seconds, reset_peaks, reporter (see peakgate.client.torch.training.Training).
    """

    def read_job(shape: Shape) -> dict[str, object]:
        from peakgate.client import from_model

        return from_model(
            model,
            micro_batch_size=micro_batch_size or shape.micro_batch,
            sequence_length=sequence_length or shape.sequence_length,
            gradient_accumulation_steps=int(accelerator.gradient_accumulation_steps),
            optimizer=optimizer,
            autocast=AUTOCAST.get(str(accelerator.mixed_precision)),
            gpu=gpu,
            world_size=int(accelerator.num_processes),
        )

    return Loop(read_job, is_step=lambda _: bool(accelerator.sync_gradients), **options)
