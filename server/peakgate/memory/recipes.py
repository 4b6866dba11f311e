"""Precision recipes of the contract (section 1.1): formats of each state."""

from __future__ import annotations

from peakgate.memory.job import Precision
from peakgate.memory.plan import Formats


def _formats(
    parameters: str, gradients: str, master: str, states: str, compute: str, *, autocast: bool = False, resident: bool = False
) -> Formats:
    return Formats(
        parameters=parameters,
        gradients=gradients,
        master_weights=master,
        optimizer_states=states,
        compute=compute,
        autocast=autocast,
        resident_gradients=resident,
    )


RECIPES: dict[str, Formats] = {
    "fp32": _formats("float32", "float32", "none", "float32", "float32"),
    "amp-bf16": _formats("float32", "float32", "none", "float32", "bfloat16", autocast=True),
    "amp-fp16": _formats("float32", "float32", "none", "float32", "float16", autocast=True),
    "bf16": _formats("bfloat16", "bfloat16", "none", "bfloat16", "bfloat16"),
    "bf16-master": _formats("bfloat16", "bfloat16", "float32", "float32", "bfloat16"),
    "fsdp-bf16": _formats("float32", "float32", "none", "float32", "bfloat16"),
    "megatron-bf16": _formats("bfloat16", "float32", "float32", "float32", "bfloat16", resident=True),
    "megatron-fp16": _formats("float16", "float32", "float32", "float32", "float16", resident=True),
    "deepspeed-bf16": _formats("bfloat16", "bfloat16", "float32", "float32", "bfloat16"),
    "deepspeed-fp16": _formats("float16", "float16", "float32", "float32", "float16"),
}


def formats_of(precision: Precision, recipe: str) -> Formats:
    """The recipe's formats, each of which a stated one wins over."""
    base = RECIPES[recipe]
    parameters = precision.parameters or base.parameters
    return _formats(
        parameters,
        precision.gradients or base.gradients,
        precision.master_weights or base.master_weights,
        precision.optimizer_states or base.optimizer_states,
        "bfloat16" if precision.compute == "float8" else precision.compute or base.compute,
        autocast=base.autocast,
        resident=base.resident_gradients,
    )
