"""Blocks by CUDA stream: the caching allocator never gives a block of one stream to another.

So what is reserved is the sum of the streams' highest moments, whenever each of them is (c10/cuda/CUDACachingAllocator.cpp: a free block is
found by stream and size).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

COMPUTE = ""
"""The stream of the model's own kernels."""


@dataclass(slots=True)
class Pools:
    """Bytes of blocks in use by stream, and their highest."""

    now: dict[str, int] = field(default_factory=lambda: {COMPUTE: 0})
    high: dict[str, int] = field(default_factory=lambda: {COMPUTE: 0})

    def add(self, block: int, stream: str) -> None:
        """Counts a block."""
        size = self.now[stream] = self.now.get(stream, 0) + block
        if size > self.high.get(stream, 0):
            self.high[stream] = size

    def forget(self) -> None:
        """Starts over from what is in use."""
        self.high = dict(self.now)

    @contextmanager
    def repeated(self, times: int) -> Iterator[None]:
        """What happens inside stands for `times` equal repetitions."""
        before, outer = dict(self.now), self.high
        self.high = dict(before)
        yield
        for stream, size in self.now.items():
            net = (times - 1) * (size - before.get(stream, 0))
            self.now[stream] = size + net
            self.high[stream] = max(self.high.get(stream, 0) + max(0, net), outer.get(stream, 0))
