"""What a model's forward pass gives to a trainer that computes the loss itself."""

from __future__ import annotations

from peakgate.memory.dtypes import ITEMSIZE
from peakgate.memory.machine import Machine
from peakgate.memory.plan import Plan
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


def cache_bytes(plan: Plan) -> int:
    """Keys and values of every layer (transformers cache_utils.py: DynamicCache)."""
    dims = plan.architecture.dims
    itemsize = ITEMSIZE["bfloat16" if plan.formats.autocast else plan.formats.compute]
    return 2 * dims["L"] * plan.micro_batch * plan.sequence * dims["kv"] * itemsize
