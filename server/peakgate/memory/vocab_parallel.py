"""Losses of Megatron-LM over a vocabulary that tensor parallelism splits: the kept logits become their own gradient in place.

megatron/core/tensor_parallel/cross_entropy.py makes an fp32 copy of the logits, takes its exponential in place and keeps it; the gradient
is cast back. Transformer Engine's kernel (transformer_engine/pytorch/cross_entropy.py) works on the 16-bit logits themselves.
"""

from __future__ import annotations

from peakgate.memory.machine import Machine
from peakgate.memory.tape import Tensor


def vocab_parallel(machine: Machine, x: Tensor) -> tuple[Tensor, None]:
    """The unfused loss: 4 bytes a logit are kept; the model's forward function names the 16-bit logits to its end."""
    (logits,) = machine.call("head", "head", [x], machine.dims["V"])
    machine.meter.enter("loss")
    (copy,) = machine.call("to_float32", "", [logits], None)
    (loss,) = machine.call("cross_entropy_in_place", "", [copy], 1)
    copy.storage.drop()
    logits.storage.drop()
    x.storage.drop()
    return loss, None


def in_place(machine: Machine, x: Tensor) -> tuple[Tensor, None]:
    """Transformer Engine's fused loss: 2 bytes a logit are kept."""
    (logits,) = machine.call("head", "head", [x], machine.dims["V"])
    machine.meter.enter("loss")
    (loss,) = machine.call("cross_entropy_in_place", "", [logits], 1)
    logits.storage.drop()
    x.storage.drop()
    return loss, None
