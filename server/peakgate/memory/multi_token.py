"""Multi-token prediction of Megatron-LM: further layers behind the last one, each with a loss of its own over the shared head.

Source: Megatron-LM core 0.14, megatron/core/transformer/multi_token_prediction.py (MultiTokenPredictionLayer: the embedded next token and
the hidden state are normed, joined, and projected to the hidden size in front of a layer and its last norm) and
models/gpt/gpt_model.py (_postprocess: the hidden states of all depths are one tensor; the logits of each depth and their loss are made
before those of the model, whose hidden state carries them). The last stage of a pipeline has an embedding of its own for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from peakgate.memory.library import BLOCKS, KERNELS
from peakgate.memory.loss import loss_of
from peakgate.memory.losses_chunks import pieces
from peakgate.memory.machine import ENDS, Machine
from peakgate.memory.tape import INT64, Tensor

if TYPE_CHECKING:
    from peakgate.memory.tape import Layer

FAR = 1 << 20
"""The first number of the stretches of these layers: beyond those of any model."""


def with_further_losses(machine: Machine, x: Tensor) -> Tensor:
    """The last hidden state, carrying the losses of all further depths; lets go of `x`."""
    depths = machine.arch.dims.get("mtp", 0)
    if not depths or machine.roles["embed"] not in machine.profile.further_tokens:
        return x
    hidden = [x]
    for depth in range(depths):
        hidden.append(_deeper(machine, hidden[-1], FAR + depth))
    x, *further = _one_tensor(machine, hidden)
    cursor = machine.cursor.get(ENDS, 0)
    for each in further:
        machine.cursor[ENDS] = cursor
        loss, _ = loss_of(machine, each)
        (carrying,) = machine.call("attach", "", [x, loss], None)
        x.storage.drop()
        loss.storage.drop()
        x = carrying
    machine.cursor[ENDS] = cursor
    return x


def _deeper(machine: Machine, x: Tensor, number: int) -> Tensor:
    """One further depth: its norms and projection are a layer of their own beside the transformer layer."""
    tape, layer = machine.tape, (number, 0)
    tape.times[number] = 1
    ids = Tensor(tape.allocate(INT64 * machine.dims["T"]), machine.dims["T"], 1, INT64)
    embedded = machine.block(BLOCKS[machine.roles["embed"]], [ids], machine.dims["h"])
    ids.storage.drop()
    _enter(machine, (number, 1))
    joined = machine.block(BLOCKS["further_token"], [embedded, x], None)
    embedded.storage.drop()
    y = machine.run_layer(layer, machine.kind, joined)
    joined.storage.drop()
    (final,) = machine.call("final", "final", [y], None)
    y.storage.drop()
    machine.layer = tape.layer = ENDS
    return final


def _enter(machine: Machine, layer: Layer) -> None:
    machine.layer = machine.tape.layer = layer
    machine.cursor[layer] = 0


def _one_tensor(machine: Machine, hidden: list[Tensor]) -> list[Tensor]:
    """All hidden states joined along the sequence, as views."""
    joined = hidden[0]
    for each in hidden[1:]:
        shape = (joined.rows + each.rows, each.width, each.itemsize)
        longer = machine.tape.apply(KERNELS["join"], {"x0": joined, "x1": each}, {"y": shape}, "temporaries")["y"]
        joined.storage.drop()
        each.storage.drop()
        joined = longer
    views = pieces(machine, joined, [each.rows // machine.plan.micro_batch for each in hidden])
    joined.storage.drop()
    return views
