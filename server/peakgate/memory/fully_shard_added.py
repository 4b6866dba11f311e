"""FSDP2 that adds up whole gradients over micro-batches, and reduces them once: under no_sync, and in a pipeline.

Sources: torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py (post_backward without reduce_grads returns), _fsdp_param.py
(to_accumulated_grad_if_needed keeps a copy in the reduce format, accumulate_unsharded_grad_if_needed adds the later ones in place). Who
does so: accelerate accelerator.py (no_sync: set_requires_gradient_sync), and torch/distributed/pipelining/stage.py
(backward_maybe_with_nosync switches resharding and reduction off for every micro-batch, run_post_backward on behind the last).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from peakgate.memory.fully_shard import REDUCE_SCATTER, FullyShard, Unit
from peakgate.memory.machine import ENDS
from peakgate.memory.sharding import drop_all
from peakgate.memory.storage import Storage
from peakgate.memory.tape import Parameter

if TYPE_CHECKING:
    from peakgate.memory.census import Census
    from peakgate.memory.machine import Machine
    from peakgate.memory.tape import Layer


class FullyShardAdded(FullyShard):
    """The events of FSDP2 where only a step's last micro-batch is reduced."""

    def __init__(self, machine: Machine, census: Census, last: Layer) -> None:
        super().__init__(machine, census, last)
        self.sums: dict[int, list[Storage]] = {}

    def _reduce(self, unit: Unit, owners: list[Parameter]) -> None:
        self._add_up(unit, owners, first_taken=self.final or self._keeps_format(owners))
        if self.final:
            for owner, total in zip(owners, self.sums.pop(id(unit), []), strict=True):
                owner.grad = total
            super()._reduce(unit, owners)
        else:
            drop_all(unit.weights)

    def _keeps_format(self, owners: list[Parameter]) -> bool:
        """Whether gradients come in the format in which they are reduced."""
        return not owners or self.gradient_itemsize == owners[0].itemsize

    def _add_up(self, unit: Unit, owners: list[Parameter], *, first_taken: bool) -> None:
        """The sums of a unit take the gradients of its weights in; `first_taken`: a sum begins as the first of them, uncopied."""
        sums = self.sums.setdefault(id(unit), []) if owners else []
        first = not sums
        for owner in owners:
            new, owner.grad = owner.grad, None
            if new is None:
                raise AssertionError("only weights with a gradient are reduced")
            if first:
                sums.append(new if first_taken else self.tape.allocate(owner.elements * self.gradient_itemsize, "gradients"))
            if not (first and first_taken):
                new.drop()


class FullyShardPipeline(FullyShardAdded):
    """The events of FSDP2 on one stage: weights stay gathered until the last micro-batch is through, and then all units are reduced."""

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

    def _reduce(self, unit: Unit, owners: list[Parameter]) -> None:
        self._add_up(unit, owners, first_taken=self._keeps_format(owners))

    def _reduce_sums(self, unit: Unit) -> None:
        drop_all(unit.weights)
        sums = self.sums.pop(id(unit), [])
        elements = sum(storage.nbytes for storage in sums) // self.gradient_itemsize
        joined = self.buffer(elements * self.gradient_itemsize)
        drop_all(sums)
        self.tape.allocate(-(-elements // unit.ranks) * self.gradient_itemsize, "gradients", REDUCE_SCATTER)
        joined.drop()
