"""LitGPT's head and loss: outside the model, of fp32 logits that the loop names until the next forward pass has returned.

Sources: litgpt model.py (GPT.forward, lm_head_chunk_size), utils.py (chunked_cross_entropy), finetune/{lora,full}.py;
lightning fabric/plugins/precision/half.py (convert_output: fp32).
"""

from __future__ import annotations

from dataclasses import replace

from peakgate.memory.losses_chunks import cross_entropy, heads, lengths_of_chunks, pieces, total
from peakgate.memory.machine import ENDS, Machine
from peakgate.memory.tape import Tensor

CHUNK = 128
"""Positions a chunk (finetune/lora.py: lm_head_chunk_size=128; utils.py: chunk_size=128)."""


def chunked(machine: Machine, x: Tensor) -> tuple[Tensor, None]:
    """finetune/lora.py: the head chunk by chunk, the loss chunk by chunk; the last chunk without its last position."""
    lengths = lengths_of_chunks(machine.plan.sequence, CHUNK)
    parts = pieces(machine, x, lengths)
    logits = _returned(machine, x, heads(machine, parts))
    losses = [cross_entropy(machine, each) for each in logits[:-1]]
    losses.append(_of_shifted(machine, logits[-1], lengths[-1] - 1))
    for each in logits:
        each.storage.drop()
    return total(machine, losses), None


def full(machine: Machine, x: Tensor) -> tuple[Tensor, None]:
    """finetune/full.py: all logits at once, the loss on 128 rows at a time."""
    logits = _returned(machine, x, machine.call("head", "head", [x], machine.dims["V"]))[0]
    cut = replace(logits, rows=machine.plan.micro_batch * (machine.plan.sequence - 1))
    (rows,) = machine.call("contiguous" if machine.plan.micro_batch > 1 else "pass", "", [cut], None)
    losses = [cross_entropy(machine, replace(rows, rows=size)) for size in lengths_of_chunks(rows.rows, CHUNK)]
    rows.storage.drop()
    logits.storage.drop()
    return total(machine, losses), None


def _returned(machine: Machine, x: Tensor, logits: list[Tensor]) -> list[Tensor]:
    """Precision.convert_output: fp32 copies of all of them, then the model's own go; the names of the batch before are bound anew."""
    converted = [machine.call("to_float32", "", [each], None)[0] for each in logits]
    for each in [x, *logits]:
        each.storage.drop()
    machine.pins.forward_returned()
    for each in converted:
        machine.pins.pin(each.storage, ENDS)
    machine.meter.enter("loss")
    return converted


def _of_shifted(machine: Machine, logits: Tensor, positions: int) -> Tensor:
    """`logits[-1][..., :-1, :].reshape`: a copy as soon as there is more than one sequence."""
    batch = machine.plan.micro_batch
    cut = replace(logits, rows=max(1, batch * positions))
    (rows,) = machine.call("contiguous" if batch > 1 else "pass", "", [cut], None)
    loss = cross_entropy(machine, rows)
    rows.storage.drop()
    return loss
