"""What data parallelism allocates around the layers of a step: the moments at which it is called, and nothing at each.

`fully_shard.py` (FSDP2), `flat_parameter.py` (FSDP1) and `zero.py` (DeepSpeed) fill the moments in; `collectives.py` chooses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from peakgate.memory.storage import Storage
from peakgate.memory.tape import Layer, Parameter, Tensor
from peakgate.memory.trained import gradient_itemsize

if TYPE_CHECKING:
    from peakgate.memory.machine import Machine


class Sharding:
    """The moments of a micro-batch, in their order."""

    def __init__(self, machine: Machine) -> None:
        self.machine, self.plan, self.tape = machine, machine.plan, machine.tape
        self.layer_kind: dict[Layer, str] = {}
        self.final = True  # the optimizer's step follows this micro-batch

    def begin(self) -> None:
        """Before the embedding."""

    def after_embedding(self) -> None:
        """Behind the embedding."""

    def before_forward(self, layer: Layer, kind: str) -> None:
        """Before a layer."""
        self.layer_kind[layer] = kind

    def after_forward(self, layer: Layer) -> None:
        """Behind it."""

    def before_head(self) -> None:
        """Behind the last layer."""

    def after_model(self, output: Tensor) -> Tensor:
        """Behind the head: the model's output."""
        return output

    def begin_backward(self) -> None:
        """Behind the loss."""

    def before_rebuild(self, layer: Layer) -> None:
        """Before a checkpointed layer runs again."""

    def before_backward(self, layer: Layer) -> None:
        """Before a layer's backward pass (ENDS: the head, then the embedding)."""

    def after_backward(self, layer: Layer) -> None:
        """Behind it."""

    def end(self) -> None:
        """Behind the backward pass."""

    def step_ended(self) -> None:
        """Behind the last micro-batch's backward pass."""

    def begin_inference(self) -> None:
        """Before a forward pass without a graph …"""
        self.begin()

    def end_inference(self) -> None:
        """… and behind it: a root's weights stay gathered."""

    # ---- what several of them need
    def buffer(self, nbytes: int, stream: str = "") -> Storage:
        """A buffer of communication."""
        return self.tape.allocate(nbytes, "communication", stream)

    @property
    def gradient_itemsize(self) -> int:
        """Bytes of an element of a reduced gradient."""
        return gradient_itemsize(self.plan)

    def shard_bytes(self, elements: int, itemsize: int) -> int:
        """One rank's part, padded to equal shards."""
        return -(-elements // self.plan.degrees.shard) * itemsize

    def with_gradients(self, layer: Layer) -> list[Parameter]:
        """Weights whose gradients wait to be reduced."""
        return [p for p in self.machine.parameters.get(layer, []) if p.grad is not None]


def drop_gradients(owners: list[Parameter]) -> None:
    """The whole gradients go once they are copied."""
    for owner in owners:
        if owner.grad is not None:
            owner.grad.drop()
        owner.grad = None


def drop_all(storages: list[Storage]) -> None:
    """Frees a list of buffers and empties it."""
    for storage in storages:
        storage.drop()
    storages.clear()
