"""Liger's kernels that a trainer switches on as one, by the table of the Trainer's own `use_liger_kernel`."""

from __future__ import annotations

from peakgate.readers.finetuners.models import model_words
from peakgate.readers.finetuners.values import say
from peakgate.readers.place import Stated
from peakgate.readers.reading import Reading, Scalar
from peakgate.readers.trainer import COMMON, KERNELS

FUSED_KERNELS, LOSS = "framework.fused_kernels", "loss.implementation"


def gate(reading: Reading) -> str:
    """The kernel of the model's gated feed-forward part."""
    return "geglu" if "gemma" in model_words(reading) else "swiglu"


def state_liger(stated: Stated, reading: Reading, *, fused_loss: bool = True) -> None:
    """All of Liger's kernels; where a trainer needs the logits, the cross entropy of whole ones in place of the fused loss."""
    name = model_words(reading)
    found = max((word for word in KERNELS if word in name), key=len, default="")
    kernels: list[Scalar] = [*([] if fused_loss else ["cross_entropy"]), *KERNELS.get(found, COMMON)]
    say(reading, FUSED_KERNELS, kernels, stated)
    if fused_loss:
        say(reading, LOSS, "fused", stated)
