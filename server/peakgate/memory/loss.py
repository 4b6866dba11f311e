"""The head and the loss behind the last layer: all logits at once, in chunks, or in one fused kernel."""

from __future__ import annotations

from dataclasses import replace

from peakgate.memory.machine import ENDS, Machine
from peakgate.memory.tape import Tensor
from peakgate.memory.vocab_parallel import in_place, vocab_parallel

CHUNKS = 8
"""torchtune modules/loss/ce_chunked_output_loss.py: num_output_chunks = 8."""


def loss_of(machine: Machine, x: Tensor) -> tuple[Tensor, Tensor | None]:
    """(loss, logits that the model's output keeps); lets go of the hidden state `x`, which the forward function names to its end."""
    machine.category = "logits"
    whole = _plain if machine.roles.get("objective") == "plain" else _full
    loss, logits = _LOSSES.get(machine.plan.loss, whole)(machine, x)
    machine.category = "temporaries"
    x.storage.drop()
    machine.meter.mark_high("loss")
    return loss, logits


def _full(machine: Machine, x: Tensor) -> tuple[Tensor, Tensor]:
    """transformers loss/loss_utils.py ForCausalLMLoss: the logits in fp32, their log-probabilities, shifted labels."""
    tape, dims = machine.tape, machine.dims
    (logits,) = machine.call("head", "head", [x], dims["V"])
    padded = tape.allocate(8 * (dims["T"] + machine.plan.micro_batch))
    labels = Tensor(tape.allocate(8 * dims["T"]), dims["T"], 1, 8)
    (upcast,) = machine.call("to_float32", "", [logits], None)
    machine.meter.enter("loss")
    (loss,) = machine.call("causal_loss", "", [upcast, labels], None)
    for storage in [upcast.storage, padded, labels.storage, *([] if machine.plan.keep_logits else [logits.storage])]:
        storage.drop()
    return loss, logits


def _plain(machine: Machine, x: Tensor) -> tuple[Tensor, Tensor]:
    """torch.nn.CrossEntropyLoss of the logits in their own format, with the labels of the batch (models/{bert,t5,vit}/modeling_*.py)."""
    (logits,) = machine.call("head", "head", [x], machine.dims["V"])
    labels = Tensor(machine.tape.allocate(0), logits.rows, 1, 8)
    machine.meter.enter("loss")
    (loss,) = machine.call("plain_loss", "", [logits, labels], None)
    for storage in [labels.storage, *([] if machine.plan.keep_logits else [logits.storage])]:
        storage.drop()
    return loss, logits


def _chunked(machine: Machine, x: Tensor) -> tuple[Tensor, None]:
    """The head and the loss on an eighth of the tokens at a time; every chunk's logits stay for its own backward pass."""
    machine.meter.enter("loss")
    cursor = machine.cursor.get(ENDS, 0)
    losses = []
    for _ in range(CHUNKS):
        machine.cursor[ENDS] = cursor  # each chunk goes through the same head
        losses.append(_chunk(machine, replace(x, rows=-(-x.rows // CHUNKS))))
    total = losses[0]
    for each in losses[1:]:
        (summed,) = machine.call("add", "", [total, each], 1)
        total.storage.drop()
        each.storage.drop()
        total = summed
    return total, None


def _chunk(machine: Machine, x: Tensor) -> Tensor:
    (logits,) = machine.call("head", "head", [x], machine.dims["V"])
    labels = Tensor(machine.tape.allocate(8 * x.rows), x.rows, 1, 8)
    (upcast,) = machine.call("to_float32", "", [logits], None)
    (loss,) = machine.call("causal_loss", "", [upcast, labels], None)
    for tensor in (logits, upcast, labels):
        tensor.storage.drop()
    return loss


def _fused(machine: Machine, x: Tensor) -> tuple[Tensor, None]:
    machine.meter.enter("loss")
    (loss,) = machine.call("fused_loss", "head", [x], machine.dims["V"])
    return loss, None


_LOSSES = {"fused": _fused, "chunked": _chunked, "vocab-parallel": vocab_parallel, "in-place": in_place}
