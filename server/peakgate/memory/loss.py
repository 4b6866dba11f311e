"""The head and the loss behind the last layer: all logits at once, in chunks, or in one fused kernel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from peakgate.memory import losses_litgpt, losses_torchtune
from peakgate.memory.loss_contrastive import contrastive
from peakgate.memory.machine import ENDS, Machine
from peakgate.memory.methods import distillation, preferences, rollouts, tiled
from peakgate.memory.profiles import profile_of
from peakgate.memory.profiles.liger import loss_kernel
from peakgate.memory.tape import Tensor
from peakgate.memory.vocab_parallel import in_place, vocab_parallel

CHUNKS = 8
"""torchtune modules/loss/ce_chunked_output_loss.py: num_output_chunks = 8."""


def loss_of(machine: Machine, x: Tensor) -> tuple[Tensor, Tensor | None]:
    """(loss, logits that the model's output keeps); lets go of the hidden state `x`, which the forward function names to its end."""
    machine.category = "logits"
    objective = machine.arch.traits.get("objective", "")
    whole = objective if objective in LOSSES else "full"
    name = profile_of(machine.plan.profile).losses.get(machine.plan.loss, machine.plan.loss) if objective != "contrastive" else whole
    loss, logits = LOSSES[whole if name not in LOSSES or name == "full" else name](machine, x)
    machine.category = "temporaries"
    machine.meter.mark_high("loss")
    return loss, logits


def _full(machine: Machine, x: Tensor) -> tuple[Tensor, Tensor]:
    """transformers loss/loss_utils.py ForCausalLMLoss: the logits in fp32, their log-probabilities, shifted labels."""
    tape, dims = machine.tape, machine.dims
    (logits,) = machine.call("head", "head", [x], dims["V"])
    logits = machine.model_output(logits)
    padded = tape.allocate(8 * (dims["T"] + machine.plan.micro_batch))
    labels = Tensor(tape.allocate(8 * dims["T"]), dims["T"], 1, 8)
    (upcast,) = machine.call("loss_upcast", "", [logits], None)
    machine.meter.enter("loss")
    (loss,) = machine.call("causal_loss", "", [upcast, labels], None)
    for storage in [upcast.storage, padded, labels.storage, *([] if machine.plan.keep_logits else [logits.storage])]:
        storage.drop()
    x.storage.drop()
    return loss, logits


def _plain(machine: Machine, x: Tensor) -> tuple[Tensor, Tensor]:
    """torch.nn.CrossEntropyLoss of the logits in their own format, with the labels of the batch (models/{bert,t5,vit}/modeling_*.py)."""
    (logits,) = machine.call("head", "head", [x], machine.dims["V"])
    labels = Tensor(machine.tape.allocate(0), logits.rows, 1, 8)
    machine.meter.enter("loss")
    (loss,) = machine.call("plain_loss", "", [logits, labels], None)
    for storage in [labels.storage, *([] if machine.plan.keep_logits else [logits.storage])]:
        storage.drop()
    x.storage.drop()
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
    x.storage.drop()
    return total, None


def _chunk(machine: Machine, x: Tensor) -> Tensor:
    (logits,) = machine.call("head", "head", [x], machine.dims["V"])
    labels = Tensor(machine.tape.allocate(8 * x.rows), x.rows, 1, 8)
    (upcast,) = machine.call("loss_upcast", "", [logits], None)
    (loss,) = machine.call("causal_loss", "", [upcast, labels], None)
    for tensor in (logits, upcast, labels):
        tensor.storage.drop()
    return loss


def _fused(machine: Machine, x: Tensor) -> tuple[Tensor, None]:
    """Liger transformers/model/loss_utils.py: labels are padded, then shifted."""
    tape, dims = machine.tape, machine.dims
    padded = tape.allocate(8 * (dims["T"] + machine.plan.micro_batch))
    labels = tape.allocate(8 * dims["T"])
    machine.meter.enter("loss")
    (loss,) = machine.call(loss_kernel(machine.plan), "head", [x], dims["V"])
    for storage in (x.storage, padded, labels):
        storage.drop()
    return loss, None


LOSSES: dict[str, Callable[[Machine, Tensor], tuple[Tensor, Tensor | None]]] = {
    "full": _full,
    "plain": _plain,
    "vocab-parallel": vocab_parallel,
    "in-place": in_place,
    "chunked": _chunked,
    "fused": _fused,
    "litgpt_full": losses_litgpt.full,
    "litgpt_chunked": losses_litgpt.chunked,
    "torchtune_full": losses_torchtune.full,
    "torchtune_chunked": losses_torchtune.chunked,
    "contrastive": contrastive,
    **preferences.LOSSES,
    **rollouts.LOSSES,
    **tiled.LOSSES,
    **distillation.LOSSES,
}
"""The ways by name; each lets go of the hidden state where the name of it ends."""
