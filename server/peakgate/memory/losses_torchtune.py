"""torchtune's head and loss: the recipe lets go of the logits before the backward pass.

Sources: torchtune modules/transformer.py (unembed: `self.output(h).float()`, chunked_output), modules/loss/ce_chunked_output_loss.py,
recipes/full_finetune_single_device.py (_loss_step: `del logits`; compile_loss replaces the chunked loss's inner function in place and
throws the compiled plain loss away).
"""

from __future__ import annotations

from peakgate.memory.losses_chunks import cross_entropy, heads, labels_of, lengths_of_chunks, pieces, total
from peakgate.memory.machine import Machine
from peakgate.memory.tape import Tensor

CHUNKS = 8
"""modules/loss/ce_chunked_output_loss.py: num_output_chunks = 8."""


def full(machine: Machine, x: Tensor) -> tuple[Tensor, None]:
    """Logits in the compute format, then in fp32; their cross entropy."""
    (logits,) = machine.call("head", "head", [x], machine.dims["V"])
    (upcast,) = machine.call("to_float32", "", [logits], None)
    for each in (logits, x):
        each.storage.drop()
    machine.meter.enter("loss")
    loss = cross_entropy(machine, upcast)
    upcast.storage.drop()
    return loss, None


def chunked(machine: Machine, x: Tensor) -> tuple[Tensor, None]:
    """The head on eight chunks of positions; the loss takes them in fp32 one by one."""
    plan = machine.plan
    size = -(-plan.sequence // CHUNKS)
    parts = pieces(machine, x, lengths_of_chunks(plan.sequence, size))
    x.storage.drop()
    folded = plan.micro_batch > 1 and plan.lora is None  # only the gradient of a trained head needs the rows folded
    logits = heads(machine, parts, copied=folded)
    machine.meter.enter("loss")
    losses = [_of_chunk(machine, each) for each in logits]
    for each in logits:
        each.storage.drop()
    return total(machine, losses), None


def _of_chunk(machine: Machine, logits: Tensor) -> Tensor:
    """compute_cross_entropy, compiled or not."""
    if machine.plan.compiled:
        labels = labels_of(machine, logits.rows)
        (loss,) = machine.call("cross_entropy_compiled", "", [logits, labels], None)
        labels.storage.drop()
        return loss
    (upcast,) = machine.call("to_float32", "", [logits], None)
    loss = cross_entropy(machine, upcast)
    upcast.storage.drop()
    return loss
