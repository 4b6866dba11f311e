"""What tensors lie on: allocations with a count of holders, which a meter counts."""

from __future__ import annotations

from peakgate.memory.meter import Meter


class Storage:
    """An allocation: it is freed when nobody holds it any more. Views share it."""

    __slots__ = ("block", "category", "emptied", "holders", "meter", "nbytes", "number", "stream")

    def __init__(self, nbytes: int, category: str, meter: Meter, stream: str = "") -> None:
        self.nbytes, self.holders, self.category, self.meter, self.stream = nbytes, 1, category, meter, stream
        self.emptied = 0
        self.block = meter.block_bytes(nbytes)
        self.number = meter.add(nbytes, self.block, category, stream)

    def hold(self) -> Storage:
        """One more holder."""
        self.holders += 1
        return self

    def drop(self) -> None:
        """One holder less; the last one frees it."""
        self.holders -= 1
        if not self.holders:
            self.meter.sub(self.nbytes, self.block, self.category, self.number, self.stream)

    def empty(self) -> None:
        """Its memory is freed while it stays named (untyped_storage().resize_(0)) …"""
        self.meter.sub(self.nbytes, self.block, self.category, self.number, self.stream)
        self.emptied, self.nbytes, self.block = self.nbytes, 0, 0

    def refill(self) -> None:
        """… and allocated again."""
        self.nbytes, self.block, self.emptied = self.emptied, self.meter.block_bytes(self.emptied), 0
        self.number = self.meter.add(self.nbytes, self.block, self.category, self.stream)

    def become(self, category: str) -> None:
        """A temporary that autograd saves is an activation from then on; one that a parameter takes over is a gradient."""
        if self.category == "temporaries" or (category == "gradients" and self.category != category):
            self.meter.move(self.nbytes, self.block, self.category, category, self.stream)
            self.category = category
