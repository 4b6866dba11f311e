"""FSDP2 without gradient synchronisation: until the last micro-batch of a step every rank adds up whole gradients.

Sources: torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py (post_backward without reduce_grads reshards and returns), _fsdp_param.py
(to_accumulated_grad_if_needed keeps a copy in the reduce format where that is another one, accumulate_unsharded_grad_if_needed adds the
later ones in place). Who does so: accelerate accelerator.py (no_sync: set_requires_gradient_sync).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from peakgate.memory.fully_shard import FullyShard, Unit
from peakgate.memory.sharding import drop_all
from peakgate.memory.tape import Parameter, Storage

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
        sums = self.sums.pop(id(unit), [])
        totals = [self._added(owner, sums[i] if sums else None) for i, owner in enumerate(owners)]
        if self.final:
            for owner, total in zip(owners, totals, strict=True):
                owner.grad = total
            super()._reduce(unit, owners)
        else:
            drop_all(unit.weights)
            self.sums[id(unit)] = totals

    def _added(self, owner: Parameter, earlier: Storage | None) -> Storage:
        """The sum of a gradient; the first one stays as it is, or in the reduce format."""
        if owner.grad is None:
            raise AssertionError("only weights with a gradient are reduced")
        new, owner.grad = owner.grad, None
        if earlier is None and (self.final or self.gradient_itemsize == owner.itemsize):
            return new
        total = earlier or self.tape.allocate(owner.elements * self.gradient_itemsize, "gradients")
        new.drop()
        return total
