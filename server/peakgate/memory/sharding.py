"""Gathered weights and reduced gradients as events around a layer's span.

FSDP (torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py): the unit in use and the next one are gathered at the same time; what no
inner unit took (embedding, last norm, head) stays gathered from the first use to the end of the backward pass; after a unit's backward its
gradients are copied to a reduce-scatter input, one of which is in flight, and only then freed; a shard stays.
ZeRO-1/2 (deepspeed/runtime/zero/stage_1_and_2.py): gradients go through one contiguous bucket, two when communication overlaps; stage 2
keeps the rank's partition. ZeRO-3 (stage3.py): gathered parameters live up to `stage3_max_live_parameters`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from peakgate.memory.dtypes import ITEMSIZE
from peakgate.memory.profiles import profile_of
from peakgate.memory.tape import Layer, Storage

if TYPE_CHECKING:
    from peakgate.memory.census import Census
    from peakgate.memory.machine import Machine

GATHERED = ("fsdp", "hsdp", "zero3")
BUCKETED = ("zero1", "zero2", "zero3")
SHARDED = (*BUCKETED, "fsdp", "hsdp")
SHARDED_GRADIENTS = ("fsdp", "hsdp", "zero2", "zero3")


class Sharding:
    """Allocates and frees what sharded data parallelism needs beside a rank's shards."""

    def __init__(self, machine: Machine, census: Census | None) -> None:
        self.machine, self.plan, self.tape = machine, machine.plan, machine.tape
        shards = census is not None and self.plan.degrees.shard > 1 and self.plan.profile != "textbook"
        shards = shards and (self.plan.degrees.sharding not in BUCKETED or profile_of(self.plan.profile).zero_buckets)
        self.kind = self.plan.degrees.sharding if shards else "none"
        self.units, self.root_elements, self.elements = (census.layers, census.ends, census.total) if census else ({}, 0, 0)
        self.itemsize = ITEMSIZE[self.plan.formats.compute]
        self.gathered: list[Storage] = []
        self.root: list[Storage] = []
        self.buckets: list[Storage] = []
        self.reducing: Storage | None = None
        self.shards: dict[tuple[Layer, str], Storage] = {}
        self.layer_kind: dict[Layer, str] = {}

    def begin(self) -> None:
        """Before the embedding: the root unit, and the buffer of the unit that is gathered ahead."""
        if self.kind not in GATHERED:
            return
        ahead = max(self.units.values(), default=0)
        if self.kind == "zero3":
            self.root = [self._buffer(min(self.plan.max_live_elements, self.elements))]
        else:
            self.root = [self._buffer(self.root_elements), self._buffer(ahead)]

    def before_forward(self, layer: Layer, kind: str) -> None:
        """Gathers a layer."""
        self.layer_kind[layer] = kind
        if self.kind in ("fsdp", "hsdp"):
            self.gathered.append(self._buffer(self.units[kind]))

    def after_forward(self) -> None:
        """Frees it again, unless it stays for the backward pass."""
        if self.gathered and self.plan.reshard_after_forward:
            self.gathered.pop().drop()

    def begin_backward(self) -> None:
        """The gradient buckets of ZeRO."""
        if self.kind in BUCKETED:
            elements = min(self.plan.reduce_bucket_elements, self.elements)
            count = 2 if self.plan.overlap_comm else 1
            self.buckets = [self._buffer(elements) for _ in range(count)]

    def before_backward(self, layer: Layer) -> None:
        """Gathers a layer for its backward pass; with a checkpoint also for its second forward pass."""
        if self.kind in ("fsdp", "hsdp") and layer in self.layer_kind and self.plan.reshard_after_forward:
            self.gathered.append(self._buffer(self.units[self.layer_kind[layer]]))

    def after_backward(self, layer: Layer) -> None:
        """Reduces a layer's gradients to the rank's shard."""
        if layer in self.layer_kind and self.gathered:
            self.gathered.pop().drop()
        if self.kind in SHARDED_GRADIENTS and (layer in self.layer_kind or self.kind in BUCKETED):
            self._reduce(layer)  # gradients of FSDP's root unit stay whole to the very end

    def _reduce(self, layer: Layer) -> None:
        owners = [p for p in self.machine.parameters.get(layer, []) if p.grad is not None]
        if not owners:
            return
        elements = sum(p.elements for p in owners)
        if self.kind in ("fsdp", "hsdp"):
            if self.reducing is not None:
                self.reducing.drop()
            self.reducing = self._buffer(elements)
        for owner in owners:
            if owner.grad is not None:
                owner.grad.drop()
            owner.grad = None
        key = layer, owners[0].name  # the head and the embedding are reduced one after the other
        if key not in self.shards:
            shard_bytes = -(-elements // self.plan.degrees.shard) * ITEMSIZE[self.plan.formats.gradients]
            self.shards[key] = self.tape.allocate(shard_bytes, "gradients")

    def end(self) -> None:
        """After the backward pass only shards stay, where gradients are sharded."""
        if self.kind in SHARDED_GRADIENTS:
            self._reduce((0, 0))
        for storage in [*self.gathered, *self.root, *self.buckets, *([self.reducing] if self.reducing else [])]:
            storage.drop()
        self.gathered, self.root, self.buckets, self.reducing = [], [], [], None

    def _buffer(self, elements: int) -> Storage:
        return self.tape.allocate(elements * self.itemsize, "communication")
