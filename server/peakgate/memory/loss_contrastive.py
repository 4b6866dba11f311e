"""The loss of two towers: each picture against every text of the rank's batch, and back.

Source: transformers models/clip/modeling_clip.py (CLIPModel.forward, image_text_contrastive_loss). All of it is as large as
the batch squared.
"""

from __future__ import annotations

from dataclasses import replace

from peakgate.memory.losses_chunks import cross_entropy
from peakgate.memory.machine import Machine
from peakgate.memory.tape import Tensor


def contrastive(machine: Machine, x: Tensor) -> tuple[Tensor, Tensor]:
    """Two cross entropies of one matrix of similarities and of its transpose."""
    (text,) = machine.call("head", "head", [x], machine.dims["V"])
    received = [] if machine.beside else [_received(machine)]
    texts, pictures = (machine.call("normalised", "", [each], None)[0] for each in (text, machine.beside or received[0]))
    (product,) = machine.call("matmul", "", [texts, pictures], machine.plan.micro_batch)
    (logits,) = machine.call("logit_scale", "", [product], product.width)
    machine.meter.enter("loss")
    losses = [cross_entropy(machine, each) for each in (logits, replace(logits))]
    (loss,) = machine.call("add", "", losses, 1)
    for tensor in (x, text, texts, pictures, product, *losses, *received):
        tensor.storage.drop()
    if not machine.plan.keep_logits:
        logits.storage.drop()
    return loss, logits


def _received(machine: Machine) -> Tensor:
    """The other tower's output where an earlier stage of a pipeline has made it."""
    width, rows, itemsize = machine.dims["projection"], machine.plan.micro_batch, machine.dims["act"]
    return Tensor(machine.tape.allocate(rows * width * itemsize), rows, width, itemsize)
