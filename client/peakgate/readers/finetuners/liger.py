"""Liger's kernels that a trainer switches on as one.

Source: Liger-Kernel transformers/monkey_patch.py: apply_liger_kernel_to_<family>(rope=True, cross_entropy=False,
fused_linear_cross_entropy=True, rms_norm=True, swiglu=True), geglu for the Gemma families; what is handed tensors that the kernel copies,
or experts, is not counted by the service and so not named (Gemma 3's norms, the rotations of Phi-3 and OLMo 2, Mixtral's experts).
"""

from __future__ import annotations

from peakgate.readers.finetuners.models import model_words
from peakgate.readers.finetuners.values import say
from peakgate.readers.place import Stated
from peakgate.readers.reading import Reading, Scalar

FUSED_KERNELS, LOSS = "framework.fused_kernels", "loss.implementation"

KERNELS: dict[str, tuple[str, ...]] = {
    "gemma": ("geglu", "rms_norm", "rope"),
    "gemma3": ("geglu",),
    "gemma-3": ("geglu",),
    "phi-3": ("rms_norm", "swiglu"),
    "phi3": ("rms_norm", "swiglu"),
    "olmo": ("rms_norm", "swiglu"),
    "mixtral": ("rms_norm", "rope"),
}
"""By a word of the model's name, the longest first."""

COMMON = ("rms_norm", "rope", "swiglu")


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
