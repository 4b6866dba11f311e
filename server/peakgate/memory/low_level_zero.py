"""ColossalAI's ZeRO stage 2: gradients leave in buckets, and the rank's shards wait for the step.

Source: colossalai/zero/low_level/low_level_optim.py. A gradient stays where it is until its bucket is full, and a tensor larger than that
goes alone (_add_to_bucket); the bucket is copied into one flat tensor, of which the rank's part is received into a shard, and the gradients
go (_run_reduction). Here all of a layer's are reduced behind it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from peakgate.memory.dtypes import ITEMSIZE
from peakgate.memory.sharding import Sharding, drop_gradients
from peakgate.memory.storage import Storage
from peakgate.memory.tape import Layer

if TYPE_CHECKING:
    from peakgate.memory.census import Census
    from peakgate.memory.machine import Machine


class LowLevelZero(Sharding):
    """The events of a backward pass."""

    def __init__(self, machine: Machine, census: Census) -> None:
        super().__init__(machine)
        self.census = census
        self.itemsize = ITEMSIZE[self.plan.formats.compute]
        self.shards: dict[tuple[Layer, str], Storage] = {}

    def after_backward(self, layer: Layer) -> None:
        """The largest bucket is flattened; the shard of all of them stays."""
        owners = self.with_gradients(layer)
        if not owners:
            return
        elements = sum(p.elements for p in owners)
        bucket = max(min(elements, self.plan.reduce_bucket_elements), *(p.elements for p in owners))
        flat = self.buffer(bucket * self.itemsize)
        key = layer, owners[0].name  # the head and the embedding come one after the other
        if key not in self.shards:
            self.shards[key] = self.tape.allocate(self.shard_bytes(elements, self.itemsize), "gradients")
        drop_gradients(owners)
        flat.drop()
