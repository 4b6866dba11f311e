"""What lives as long as a micro-batch's graph does, and not only until its node has run.

Of a node PyTorch releases the saved variables when it has run (torch/csrc/autograd/engine.cpp), not attributes of a Python function's
context; the graph itself lives while an output of it has a name.
"""

from __future__ import annotations

from peakgate.memory.meter import Meter
from peakgate.memory.storage import Storage
from peakgate.memory.tape import Layer


class Pins:
    """Storages that hang on the graph of this micro-batch, and those of the one before."""

    def __init__(self, meter: Meter, times: dict[int, int]) -> None:
        self.meter, self.times = meter, times
        self.current: dict[int, tuple[Layer, Storage]] = {}
        self.earlier: dict[int, tuple[Layer, Storage]] = {}

    def pin(self, storage: Storage, layer: Layer) -> None:
        """Holds a storage until the graph goes."""
        if id(storage) not in self.current:
            storage.become("activations")
            self.current[id(storage)] = layer, storage.hold()

    def forward_returned(self) -> None:
        """The names of the outputs are bound anew: the graph before goes."""
        self._release(self.earlier)
        self.earlier = {}

    def step_ended(self, *, named: bool) -> None:
        """The micro-batch is done; `named`: the loop still names an output."""
        if not named:
            self._release(self.current)
        self.earlier, self.current = (self.current if named else {}), {}

    def _release(self, pins: dict[int, tuple[Layer, Storage]]) -> None:
        for layer, storage in pins.values():
            more = self.times[layer[0]] - 1  # of the equal layers that were not walked
            if storage.holders == 1:
                self.meter.sub(more * storage.nbytes, more * storage.block, storage.category, storage.number, storage.stream)
            storage.drop()
