"""FSDP2: units whose weights are gathered for their layer's span, on CUDA streams of their own.

Source: torch/distributed/fsdp/_fully_shard. What lives on which stream (_fsdp_collectives.py):

- all-gather: a copy of the rank's shards in the compute format (foreach_all_gather: only where the formats differ) and the all-gather's
  output; the compute stream then copies it out into one tensor a weight (foreach_all_gather_copy_out).
- compute: those tensors, the gradients, and the reduce-scatter's input (foreach_reduce).
- reduce-scatter: its output, which is the gradient's shard.

When (_fsdp_param_group.py, _fsdp_state.py): the previous output is held until the next unit is copied out (wait_for_unshard); a unit is
resharded behind its forward pass, the root's never; the backward pass gathers the preceding unit as soon as its own is there
(_backward_prefetch); one reduce-scatter input is in flight, and is let go when the next unit is reduced (post_backward).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from peakgate.memory.dtypes import ITEMSIZE
from peakgate.memory.machine import ENDS
from peakgate.memory.offload import on_host
from peakgate.memory.profiles import profile_of
from peakgate.memory.sharding import Sharding, drop_all, drop_gradients
from peakgate.memory.storage import Storage
from peakgate.memory.tape import Layer, Parameter, Tensor

if TYPE_CHECKING:
    from peakgate.memory.census import Census, Sizes
    from peakgate.memory.machine import Machine

ALL_GATHER, REDUCE_SCATTER = "all-gather", "reduce-scatter"
FLOAT8_FROM = 100_000
"""Elements from which a weight is a linear layer's and not a norm's: what is gathered in 8 bits."""


@dataclass(slots=True, eq=False)
class Unit:
    """The weights that one fully_shard call gathers together; `itemsizes` while they are gathered."""

    sizes: Sizes
    itemsizes: Sizes
    reshards: bool
    ranks: int
    """Over how many its weights are sharded; a unit of one rank is copied and not gathered."""
    weights: list[Storage] = field(default_factory=list)
    output: Storage | None = None
    shard: Storage | None = None

    @property
    def nbytes(self) -> int:
        """Bytes of all weights, gathered."""
        return sum(n * width for n, width in zip(self.sizes, self.itemsizes, strict=True))


class FullyShard(Sharding):
    """The events of FSDP2. `last`: the rank's last layer."""

    def __init__(self, machine: Machine, census: Census, last: Layer) -> None:
        super().__init__(machine)
        profile, formats = profile_of(self.plan.profile), self.plan.formats
        self.census, self.last = census, last
        self.width = ITEMSIZE[formats.compute]
        self.casts = formats.parameters != formats.compute
        self.offloaded = "parameters" in on_host(self.plan)
        split = profile.splits_ends and bool(census.embedding) and bool(census.head)
        self.embedding = self._unit(census.embedding) if split else None
        self.head = self._unit(census.head if split else (*census.embedding, *census.head), reshards=False)
        self.keeps_last = profile.keeps_last_unit
        self.units: dict[Layer, list[Unit]] = {}
        self.order: list[Unit] = []
        self.held: Storage | None = None
        self.reducing: Storage | None = None
        self.closed = False

    def _unit(self, sizes: Sizes, *, reshards: bool = True, float8: bool = False, ranks: int = 0) -> Unit:
        widths = tuple(1 if float8 and n > FLOAT8_FROM else self.width for n in sizes)
        return Unit(sizes, widths, reshards and self.plan.reshard_after_forward, ranks or self.plan.degrees.shard)

    def _units_of(self, layer: Layer, kind: str) -> list[Unit]:
        """A layer, and its experts where they have data parallel ranks of their own."""
        keeps, float8 = self.keeps_last and layer == self.last, self.plan.float8_gather
        units = [self._unit(self.census.layers[kind], reshards=not keeps, float8=float8)]
        experts = self.census.experts[kind]
        return [*units, self._unit(experts, float8=float8, ranks=self.plan.degrees.expert_shard)] if experts else units

    # ---- moments
    def begin(self) -> None:
        """The root unit stays from here to the end of the backward pass; an embedding of its own is gathered for its lookup."""
        self.order, self.closed = [], False
        self._gather(self.embedding or self.head, forward=True)

    def after_embedding(self) -> None:
        """The embedding's unit is done."""
        if self.embedding is not None:
            self._done(self.embedding)

    def before_forward(self, layer: Layer, kind: str) -> None:
        """Gathers a layer."""
        super().before_forward(layer, kind)
        if layer not in self.units:
            self.units[layer] = self._units_of(layer, kind)
        for unit in self.units[layer]:
            self._gather(unit, forward=True)

    def after_forward(self, layer: Layer) -> None:
        """Frees it again, unless it stays for the backward pass."""
        for unit in self.units[layer]:
            self._done(unit)

    def before_head(self) -> None:
        """Gathers the head's unit."""
        self._gather(self.head, forward=True)

    def after_model(self, output: Tensor) -> Tensor:
        """The root's forward pass ends; the gradient of its output starts the backward pass of the root."""
        self._close()
        return self.tape.hook(output, self._begin_head)

    def begin_backward(self) -> None:
        """The same where the loss runs the head itself."""
        if not self.closed:
            self._close()
            self._begin_head()

    def before_rebuild(self, layer: Layer) -> None:
        """A second forward pass finds its weights gathered, or gathers them to stay."""
        for unit in self.units[layer]:
            self._gather(unit, forward=False)

    def before_backward(self, layer: Layer) -> None:
        """Gathers a layer, and then the one that comes next; the node of a reentrant stretch is none, and begins its layers itself."""
        if layer != ENDS:
            if layer in self.units:
                self._begin_backward(self.units[layer])
        elif self.embedding is not None and self.order == [self.embedding]:
            self._begin_backward([self.embedding])

    def after_backward(self, layer: Layer) -> None:
        """Reduces a unit's gradients to the rank's shard."""
        if layer != ENDS:
            if layer in self.units:
                self._reduce_layer(layer)
        elif self.embedding is not None:
            owners = self.with_gradients(ENDS)
            lookup = [p for p in owners if p.name.startswith("embedding")]
            self._reduce(self.embedding if lookup else self.head, lookup or owners)

    def end(self) -> None:
        """The root's gradients come last; only shards stay."""
        self._reduce(self.head, self.with_gradients(ENDS))
        units = [unit for layer in self.units.values() for unit in layer]
        mistargeted = [unit.output for unit in units]  # gathered ahead for frozen layers (finalize_backward)
        drop_all([each for each in (self.reducing, self.held, self.head.output, *mistargeted) if each is not None])
        self.reducing = self.held = self.head.output = None
        for unit in units:
            unit.output = None

    # ---- parts of them
    def _unshard(self, unit: Unit) -> None:
        """Starts the all-gather of a unit."""
        if unit.weights or unit.output is not None or unit.ranks == 1:
            return
        inputs = self._float8_shards(unit)
        wide = sum(n * width for n, width in zip(unit.sizes, unit.itemsizes, strict=True) if width == self.width)
        if self.offloaded:  # _fsdp_param.py, all_gather_inputs: the shards come from the host first
            inputs.append(self.buffer(-(-sum(unit.sizes) // unit.ranks) * ITEMSIZE[self.plan.formats.parameters], ALL_GATHER))
        if self.casts:
            inputs.append(self.buffer(-(-wide // unit.ranks), ALL_GATHER))
        unit.output = self.buffer(unit.nbytes, ALL_GATHER)
        drop_all(inputs)

    def _float8_shards(self, unit: Unit) -> list[Storage]:
        """Each shard scaled and clamped in fp32, then cast (torchao float8/fsdp_utils.py: fsdp_pre_all_gather)."""
        shards = []
        for n, width in zip(unit.sizes, unit.itemsizes, strict=True):
            if width < self.width:
                scaled, clamped = (self.buffer(-(-n // unit.ranks) * 4, ALL_GATHER) for _ in range(2))
                shards.append(self.buffer(-(-n // unit.ranks), ALL_GATHER))
                drop_all([clamped, scaled])
        return shards

    def _gather(self, unit: Unit, *, forward: bool) -> None:
        """Waits for a unit's all-gather and copies it out; in forward its output stays until the next one is copied out."""
        if unit.ranks == 1:
            self._copy(unit)
        self._unshard(unit)
        if unit.output is None:
            return
        if forward and self.held is not None:
            self.held.drop()
            self.held = None
        unit.weights = [self.buffer(n * width) for n, width in zip(unit.sizes, unit.itemsizes, strict=True)]
        if forward:
            self.held = unit.output
        else:
            unit.output.drop()
        unit.output = None

    def _copy(self, unit: Unit) -> None:
        """A unit of one rank: each weight is cast, and the cast copied (_fsdp_param_group.py: wait_for_unshard, world_size == 1)."""
        if unit.weights:
            return
        for n, width in zip(unit.sizes, unit.itemsizes, strict=True):
            cast = self.buffer(n * width if self.casts else 0)
            unit.weights.append(self.buffer(n * width))
            cast.drop()

    def _done(self, unit: Unit) -> None:
        if unit.reshards:
            drop_all(unit.weights)
        self.order.append(unit)

    def _close(self) -> None:
        """The root's forward pass is over."""
        self.closed = True
        self._done(self.head)
        if self.held is not None:
            self.held.drop()
            self.held = None

    def _begin_head(self) -> None:
        self._begin_backward([self.head])

    def _begin_backward(self, units: list[Unit]) -> None:
        """Gathers the units of a layer, and starts the all-gathers of the layer before it."""
        for unit in units:
            self._gather(unit, forward=False)
        first = units[0]
        if first in self.order:
            self.order = self.order[: self.order.index(first)]
            if self.order:
                before = self.order[-1]
                for unit in next((each for each in self.units.values() if before in each), [before]):
                    self._unshard(unit)

    def _reduce_layer(self, layer: Layer) -> None:
        """Experts first: their gradients are there before the layer's."""
        owners, (unit, *experts) = self.with_gradients(layer), self.units[layer]
        for own in experts:
            self._reduce(own, [p for p in owners if p.name.startswith("experts.")])
        self._reduce(unit, [p for p in owners if not experts or not p.name.startswith("experts.")])

    def _reduce(self, unit: Unit, owners: list[Parameter]) -> None:
        drop_all(unit.weights)
        if not owners:
            return
        if self.reducing is not None:
            self.reducing.drop()
        elements = sum(p.elements for p in owners)
        self.reducing = self.buffer(elements * self.gradient_itemsize)
        drop_gradients(owners)
        shard = self.tape.allocate(-(-elements // unit.ranks) * self.gradient_itemsize, "gradients", REDUCE_SCATTER)
        if unit.ranks == 1:  # nothing is scattered: a quotient is copied instead (foreach_reduce with a gradient_divide_factor)
            self.buffer(elements * self.gradient_itemsize, REDUCE_SCATTER).drop()
        if unit.shard is None and not self.offloaded:
            unit.shard = shard
        else:  # added to the shard of the micro-batches before, or copied to the host
            shard.drop()
