"""The CUDA caching allocator: blocks for requests, and a replay of a step's allocations.

Rules (c10/cuda/CUDACachingAllocator.cpp, c10/core/AllocatorConfig.h; they reproduce public traces to the byte): requests are rounded to
512 B; up to 1 MiB they come from 2 MiB segments, below 10 MiB from 20 MiB segments, above from segments of their own rounded to 2 MiB;
a large block is split only when more than 1 MiB would be left over.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable
from dataclasses import dataclass

ROUND = 512
MIB = 1 << 20
SMALL = MIB
SMALL_SEGMENT = 2 * MIB
LARGE_SEGMENT = 20 * MIB
OWN_SEGMENT_FROM = 10 * MIB
SEGMENT_ROUND = 2 * MIB


def block_bytes(nbytes: int) -> int:
    """The block that a request sits in, in a fresh segment: what `max_memory_allocated` counts (up to 1 MiB more than asked for)."""
    if nbytes <= 0:
        return nbytes
    rounded = -(-nbytes // ROUND) * ROUND
    if rounded < OWN_SEGMENT_FROM:
        return rounded
    segment = -(-rounded // SEGMENT_ROUND) * SEGMENT_ROUND
    return segment if segment - rounded <= MIB else rounded


@dataclass(slots=True, eq=False)
class _Block:
    address: int
    size: int
    small: bool
    free: bool = False
    before: _Block | None = None
    after: _Block | None = None


class OutOfMemoryError(Exception):
    """No segment fits under the cap, even after the cache is flushed."""


class CachingAllocator:
    """Hands out blocks; `cap_bytes`: cudaMalloc fails beyond it, the cache is then flushed and the request tried again."""

    def __init__(self, cap_bytes: int | None = None) -> None:
        self.cap_bytes = cap_bytes
        self.pools: dict[bool, list[tuple[int, int, _Block]]] = {True: [], False: []}
        self.top = self.allocated = self.reserved = self.highest_allocated = self.highest_reserved = 0
        self.flushes = 0

    def malloc(self, nbytes: int) -> _Block:
        """A block for a request; raises OutOfMemoryError."""
        size = max(ROUND, -(-nbytes // ROUND) * ROUND)
        small = size <= SMALL
        pool = self.pools[small]
        i = bisect.bisect_left(pool, (size, -1))
        block = pool.pop(i)[2] if i < len(pool) else self._segment(size, small=small)
        self._split(block, size)
        block.free = False
        self.allocated += block.size
        self.highest_allocated = max(self.highest_allocated, self.allocated)
        return block

    def _segment(self, size: int, *, small: bool) -> _Block:
        want = SMALL_SEGMENT if small else LARGE_SEGMENT if size < OWN_SEGMENT_FROM else -(-size // SEGMENT_ROUND) * SEGMENT_ROUND
        if self.cap_bytes is not None and self.reserved + want > self.cap_bytes:
            self.flush()
            if self.reserved + want > self.cap_bytes:
                raise OutOfMemoryError
        block = _Block(self.top, want, small)
        self.top += want + SEGMENT_ROUND  # segments never touch
        self.reserved += want
        self.highest_reserved = max(self.highest_reserved, self.reserved)
        return block

    def _split(self, block: _Block, size: int) -> None:
        rest = block.size - size
        if rest < ROUND if block.small else rest <= MIB:
            return
        tail = _Block(block.address + size, rest, block.small, before=block, after=block.after)
        if block.after is not None:
            block.after.before = tail
        block.after, block.size = tail, size
        self._put(tail)

    def _put(self, block: _Block) -> None:
        block.free = True
        bisect.insort(self.pools[block.small], (block.size, block.address, block))

    def _take(self, block: _Block) -> None:
        pool = self.pools[block.small]
        pool.pop(bisect.bisect_left(pool, (block.size, block.address)))

    def free(self, block: _Block) -> None:
        """Gives a block back and joins it with free neighbours."""
        self.allocated -= block.size
        if block.before is not None and block.before.free:
            head = block.before
            self._take(head)
            head.size += block.size
            head.after = block.after
            if block.after is not None:
                block.after.before = head
            block = head
        if block.after is not None and block.after.free:
            tail = block.after
            self._take(tail)
            block.size += tail.size
            block.after = tail.after
            if tail.after is not None:
                tail.after.before = block
        self._put(block)

    def flush(self) -> None:
        """Returns every wholly free segment to the driver (release_cached_blocks)."""
        self.flushes += 1
        for small, pool in self.pools.items():
            kept = [entry for entry in pool if entry[2].before is not None or entry[2].after is not None]
            self.reserved -= sum(entry[0] for entry in pool) - sum(entry[0] for entry in kept)
            self.pools[small] = kept


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """Highest bytes of a replay."""

    allocated_bytes: int
    reserved_bytes: int


def replay(
    resident: Iterable[int],
    steps: Iterable[Iterable[tuple[int, int]]],
    cap_bytes: int | None = None,
    *,
    load: Iterable[tuple[int, int]] = (),
) -> Replayed:
    """Plays the events of `load`, allocates the resident sizes, then plays each step's events. What `load` does not free stays.

    Raises OutOfMemoryError under a cap that is too small.
    """
    allocator = CachingAllocator(cap_bytes)
    _play(allocator, load)
    for nbytes in resident:
        if nbytes > 0:
            allocator.malloc(nbytes)
    for events in steps:
        for block in _play(allocator, events):
            allocator.free(block)
    return Replayed(allocated_bytes=allocator.highest_allocated, reserved_bytes=allocator.highest_reserved)


def _play(allocator: CachingAllocator, events: Iterable[tuple[int, int]]) -> list[_Block]:
    """Allocates and frees by number; the blocks that are left."""
    blocks: dict[int, _Block] = {}
    for number, nbytes in events:
        if nbytes > 0:
            blocks[number] = allocator.malloc(nbytes)
        elif number in blocks:
            allocator.free(blocks.pop(number))
    return list(blocks.values())


def smallest_cap(
    resident: list[int],
    steps: list[list[tuple[int, int]]],
    allocated_bytes: int,
    reserved_bytes: int,
    *,
    load: Iterable[tuple[int, int]] = (),
) -> int:
    """The smallest cap, to 16 MiB, under which the replay completes: what the step needs of a card beside context and libraries."""
    low, high, grain = allocated_bytes, max(reserved_bytes, allocated_bytes), 16 * MIB
    while high - low > grain:
        middle = (low + high) // 2
        try:
            replay(resident, steps, middle, load=load)
            high = middle
        except OutOfMemoryError:
            low = middle
    return high
