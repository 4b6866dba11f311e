"""FSDP1: the weights of a unit are views of one flat tensor, gathered on a stream of its own.

Source: torch/distributed/fsdp. The unsharded flat tensor is made on the unshard stream (_flat_param.py:
_alloc_padded_unsharded_flat_param), the rank's low-precision shard on the pre-unshard stream (_use_low_precision_shard). The limiter lets
two units be in flight
(_limiter_utils.py: _FreeEventQueue), so a freed one still counts until the next is there. The root's stays gathered. The backward pass
gathers the next unit before it computes (BackwardPrefetch.BACKWARD_PRE). The gradients of the views are joined into one flat gradient
(backward of split_with_sizes), cast to the reduce format where that is another one, and reduced into the shard on the post-backward
stream (_runtime_utils.py: _post_backward_hook, _reduce_grad). Offloaded shards come to the GPU for their unit's all-gather (_flat_param.py:
pre_unshard, _use_low_precision_shard), and gradients leave for the host once they are reduced.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from peakgate.memory.dtypes import ITEMSIZE
from peakgate.memory.machine import ENDS
from peakgate.memory.offload import on_host
from peakgate.memory.sharding import Sharding, drop_all, drop_gradients
from peakgate.memory.storage import Storage
from peakgate.memory.tape import Layer, Parameter

if TYPE_CHECKING:
    from peakgate.memory.census import Census
    from peakgate.memory.machine import Machine

UNSHARD, PRE_UNSHARD, POST_BACKWARD = "unshard", "pre-unshard", "post-backward"


class FlatParameters(Sharding):
    """The events of FSDP1."""

    def __init__(self, machine: Machine, census: Census) -> None:
        super().__init__(machine)
        self.census, formats = census, self.plan.formats
        self.width = ITEMSIZE[formats.compute]
        self.casts = formats.parameters != formats.compute
        self.offloaded, self.stored = "parameters" in on_host(self.plan), ITEMSIZE[formats.parameters]
        self.root = sum(census.embedding) + sum(census.head)
        self.whole: dict[Layer, Storage] = {}
        self.leaving: Storage | None = None
        self.reducing: list[Storage] = []
        self.shards: dict[Layer, Storage] = {}
        self.added: dict[Layer, Storage] = {}
        self.order: list[Layer] = []

    # ---- moments
    def begin(self) -> None:
        """The root's weights stay gathered from here on."""
        self.order = []
        self._gather(ENDS, self.root)

    def before_forward(self, layer: Layer, kind: str) -> None:
        """Gathers a layer."""
        super().before_forward(layer, kind)
        self._gather_layer(layer)

    def after_forward(self, layer: Layer) -> None:
        """Frees it again, unless it stays for the backward pass (SHARD_GRAD_OP)."""
        self.order.append(layer)
        if self.plan.reshard_after_forward:
            self._leave(layer)

    def begin_backward(self) -> None:
        """The last unit of the forward pass has long been computed with."""
        self._let_go()

    def before_rebuild(self, layer: Layer) -> None:
        """A second forward pass needs its weights."""
        self._gather_layer(layer)

    def before_backward(self, layer: Layer) -> None:
        """Gathers a layer and the one that comes next."""
        if layer not in self.layer_kind:
            return
        self._gather_layer(layer)
        if layer in self.order:
            self.order = self.order[: self.order.index(layer)]
            if self.order:
                self._gather_layer(self.order[-1])

    def after_backward(self, layer: Layer) -> None:
        """Frees the weights and reduces the gradients to the rank's shard."""
        if layer in self.layer_kind:
            self._leave(layer)
            self._let_go()
            self._reduce(layer, self.with_gradients(layer))

    def end(self) -> None:
        """The root's gradients come last; only shards stay."""
        self._leave(ENDS)
        self._reduce(ENDS, self.with_gradients(ENDS))
        self._let_go()
        drop_all([*self.whole.values(), *self.reducing])
        self.whole, self.reducing = {}, []

    # ---- parts of them
    def _gather_layer(self, layer: Layer) -> None:
        kind = self.layer_kind[layer]
        self._gather(layer, sum(self.census.layers[kind]) + sum(self.census.experts[kind]))

    def _gather(self, layer: Layer, elements: int) -> None:
        if layer in self.whole:
            return
        shards = [self.buffer(self.shard_bytes(elements, self.stored), PRE_UNSHARD)] if self.offloaded else []
        if self.casts:
            shard = self.buffer(self.shard_bytes(elements, self.width), PRE_UNSHARD)
            drop_all(shards)
            shards = [shard]
        self.whole[layer] = self.buffer(elements * self.width, UNSHARD)
        drop_all(shards)
        self._let_go()

    def _leave(self, layer: Layer) -> None:
        """Freed, but its block is not free before the next unit is there."""
        if layer in self.whole:
            self._let_go()
            self.leaving = self.whole.pop(layer)

    def _let_go(self) -> None:
        if self.leaving is not None:
            self.leaving.drop()
            self.leaving = None

    def _reduce(self, layer: Layer, owners: list[Parameter]) -> None:
        if not owners:
            return
        elements = sum(p.elements for p in owners)
        flat = self._joined(layer, owners)
        drop_all(self.reducing)
        self.reducing = [flat]
        if self.gradient_itemsize != owners[0].itemsize:
            self.reducing.append(self.buffer(elements * self.gradient_itemsize, POST_BACKWARD))
        shard = self.tape.allocate(self.shard_bytes(elements, self.gradient_itemsize), "gradients", POST_BACKWARD)
        if layer in self.shards or self.offloaded:
            shard.drop()
        else:
            self.shards[layer] = shard

    def _joined(self, layer: Layer, owners: list[Parameter]) -> Storage:
        """One flat gradient in the place of the weights' own, added in place to what the micro-batches before have left."""
        flat, earlier = self.tape.allocate(sum(p.nbytes for p in owners), "gradients"), self.added.pop(layer, None)
        drop_gradients(owners)
        if earlier is None:
            return flat
        flat.drop()
        return earlier


class FlatParametersAdded(FlatParameters):
    """The same under no_sync: until the last micro-batch of a step nothing is reduced, and every rank adds up whole gradients.

    torch/distributed/fsdp/_runtime_utils.py: _post_backward_hook returns early without `_sync_gradients`. Who does so: accelerate
    accelerator.py (accumulate, no_sync), lightning fabric (no_backward_sync).
    """

    def _reduce(self, layer: Layer, owners: list[Parameter]) -> None:
        if self.final:
            super()._reduce(layer, owners)
        elif owners:
            self.added[layer] = self._joined(layer, owners)
