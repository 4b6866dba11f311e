"""DeepSpeed ZeRO: gradient buckets, partitions, and in stage 3 gathered weights.

Sources (deepspeed/runtime/zero): stages 1 and 2 make one contiguous bucket of `reduce_bucket_size` elements at the start of the backward
pass, two with overlap_comm (stage_1_and_2.py: backward, setup_buckets), and copy each gradient into it as it comes; stage 2 keeps the
rank's partition of them, stage 1 all of them until the step. Stage 3 has the bucket and the partition from the start (stage3.py:
_setup_for_real_optimizer), and gathered weights live up to `stage3_max_live_parameters` (parameter_offload.py). With the optimizer in the
host's memory the partitions of gradients are there as well, through a buffer as large as the largest weight in stage 2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from peakgate.memory.dtypes import ITEMSIZE
from peakgate.memory.offload import on_host
from peakgate.memory.sharding import Sharding, drop_all, drop_gradients
from peakgate.memory.storage import Storage
from peakgate.memory.tape import Layer

if TYPE_CHECKING:
    from peakgate.memory.census import Census
    from peakgate.memory.machine import Machine


class Zero(Sharding):
    """The events of ZeRO."""

    def __init__(self, machine: Machine, census: Census) -> None:
        super().__init__(machine)
        self.census, self.stage = census, int(self.plan.degrees.sharding[-1])
        self.itemsize = ITEMSIZE[self.plan.formats.compute]
        self.offloaded = "gradients" in on_host(self.plan)
        self.largest = max((*census.embedding, *census.head, *(n for sizes in census.layers.values() for n in sizes)), default=0)
        self.copied: Storage | None = None
        self.buffers: list[Storage] = []
        self.shards: dict[tuple[Layer, str], Storage] = {}

    def begin(self) -> None:
        """Stage 3: gathered weights, and the bucket."""
        if self.offloaded and self.stage == 2:  # stage_1_and_2.py: temp_grad_buffer_for_gpu_offload
            self.copied = self.buffer(self.largest * self.itemsize)
        if self.stage == 3:
            live = min(self.plan.max_live_elements, self.census.total)
            self.buffers = [self.buffer(live * self.itemsize), self.buffer(self._bucket_bytes())]

    def begin_backward(self) -> None:
        """Stages 1 and 2: the buckets."""
        if self.stage < 3 and not self.plan.formats.resident_gradients:
            self.buffers = [self.buffer(self._bucket_bytes()) for _ in range(2 if self.plan.overlap_comm else 1)]

    def begin_inference(self) -> None:
        """Stage 3: gathered weights alone."""
        if self.stage == 3:
            self.buffers = [self.buffer(min(self.plan.max_live_elements, self.census.total) * self.itemsize)]

    def end_inference(self) -> None:
        """They go."""
        drop_all(self.buffers)

    def _bucket_bytes(self) -> int:
        return self.plan.reduce_bucket_elements * self.itemsize

    def after_backward(self, layer: Layer) -> None:
        """Stages 2 and 3: the gradients go through the bucket, and the rank's partition stays."""
        owners = self.with_gradients(layer)
        if self.stage == 1 or not owners:
            return
        elements = sum(p.elements for p in owners)
        key = layer, owners[0].name  # the head and the embedding come one after the other
        if key not in self.shards and not self.offloaded:
            self.shards[key] = self.tape.allocate(self.shard_bytes(elements, self.itemsize), "gradients")
        drop_gradients(owners)

    def end(self) -> None:
        """The buckets go."""
        drop_all(self.buffers)
        if self.copied is not None:
            self.copied.drop()
            self.copied = None
