"""What a model's forward pass gives to a trainer that computes the loss itself."""

from __future__ import annotations

from peakgate.memory.machine import Machine
from peakgate.memory.tape import Tensor


def logits_of(machine: Machine, x: Tensor) -> Tensor:
    """The model's output, in fp32 under autocast (accelerate utils/operations.py: ConvertOutputsToFp32); lets go of the hidden state."""
    (logits,) = machine.call("head", "head", [x], machine.dims["V"])
    logits = machine.model_output(logits)
    x.storage.drop()
    if not machine.plan.formats.autocast:
        return logits
    (converted,) = machine.call("to_float32", "", [logits], None)
    logits.storage.drop()
    return converted
