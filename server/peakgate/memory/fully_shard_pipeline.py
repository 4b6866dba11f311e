"""FSDP2 inside a pipeline: gradients of all micro-batches are added up whole, and reduced once behind the last one.

Sources: torch/distributed/pipelining/stage.py (backward_maybe_with_nosync switches resharding and gradient reduction off for every
micro-batch, run_post_backward or REDUCE_GRAD switches them on behind the last), torch/distributed/fsdp/_fully_shard/_fsdp_param.py
(to_accumulated_grad_if_needed keeps a copy in the reduce format, accumulate_unsharded_grad_if_needed adds the later ones in place).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from peakgate.memory.fully_shard import REDUCE_SCATTER, FullyShard, Unit
from peakgate.memory.machine import ENDS
from peakgate.memory.sharding import drop_all
from peakgate.memory.tape import Parameter, Storage

if TYPE_CHECKING:
    from peakgate.memory.census import Census
    from peakgate.memory.machine import Machine
    from peakgate.memory.tape import Layer


class FullyShardPipeline(FullyShard):
    """The events of FSDP2 on one stage."""

    def __init__(self, machine: Machine, census: Census, last: Layer) -> None:
        super().__init__(machine, census, last)
        self.sums: dict[int, list[Storage]] = {}

    def end(self) -> None:
        """A micro-batch is over: its gradients are added up, and weights stay gathered."""
        self._reduce(self.head, self.with_gradients(ENDS))
        if self.head.output is not None:
            self.head.output.drop()
            self.head.output = None

    def step_ended(self) -> None:
        """Every unit is resharded, and its sums are reduced to the rank's shard."""
        for layer, units in self.units.items():
            with self.machine.meter.repeated(self.tape.times[layer[0]]):
                for unit in units:
                    self._reduce_sums(unit)
        for end in (self.embedding, self.head):
            if end is not None:
                self._reduce_sums(end)

    # ---- parts of them
    def _reduce(self, unit: Unit, owners: list[Parameter]) -> None:
        """Gradients in the compute format become, or are added to, sums in the reduce format."""
        first = id(unit) not in self.sums
        for owner in owners:
            if owner.grad is None:
                continue
            if first:
                self.sums.setdefault(id(unit), []).append(self.tape.allocate(owner.elements * self.gradient_itemsize, "gradients"))
            owner.grad.drop()
            owner.grad = None

    def _reduce_sums(self, unit: Unit) -> None:
        drop_all(unit.weights)
        sums = self.sums.pop(id(unit), [])
        elements = sum(storage.nbytes for storage in sums) // self.gradient_itemsize
        joined = self.buffer(elements * self.gradient_itemsize)
        drop_all(sums)
        self.tape.allocate(-(-elements // unit.ranks) * self.gradient_itemsize, "gradients", REDUCE_SCATTER)
        joined.drop()
