"""Formats of what is trained: under LoRA the adapters', whatever the base is in (torch.optim: states are zeros_like(parameter), a gradient
has its parameter's format)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peakgate.memory.dtypes import ITEMSIZE

if TYPE_CHECKING:
    from peakgate.memory.plan import Plan


def gradient_itemsize(plan: Plan) -> int:
    """Bytes of an element of a gradient."""
    return ITEMSIZE[plan.lora.adapter_dtype if plan.lora else plan.formats.gradients]


def state_itemsize(plan: Plan) -> int:
    """Bytes of an element of the optimizer's states, where the optimizer has no format of its own."""
    return ITEMSIZE[plan.lora.adapter_dtype if plan.lora else plan.formats.optimizer_states]
