"""The CUDA caching allocator: blocks for requests, and a replay of a step's allocations.

Rules (c10/cuda/CUDACachingAllocator.cpp, c10/core/AllocatorConfig.h; they reproduce public traces to the byte): requests are rounded to
512 B; up to 1 MiB they come from 2 MiB segments, below 10 MiB from 20 MiB segments, above from segments of their own rounded to 2 MiB;
a large block is split only when more than 1 MiB would be left over. A block belongs to the CUDA stream that asked for it: each stream has
pools of its own. With expandable segments each pool is one segment that grows (`expandable.py`). A CUDA graph allocates from a private
pool, which is one stream more here: its addresses are part of the graph, so that nothing of it goes back to the driver while the graph
lives (PrivatePool, release_cached_blocks: only pools without a user are freeable).
"""

from __future__ import annotations

import bisect
from dataclasses import dataclass, field

ROUND = 512
MIB = 1 << 20
SMALL = MIB
SMALL_SEGMENT = 2 * MIB
LARGE_SEGMENT = 20 * MIB
OWN_SEGMENT_FROM = 10 * MIB
SEGMENT_ROUND = 2 * MIB
PRIVATE = "graph"
"""How the name of a CUDA graph's pool begins."""


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
class Block:
    """A stretch of a segment: in use, free, or (expandable segments only) without memory behind its addresses."""

    address: int
    size: int
    pool: Pool
    free: bool = False
    mapped: bool = True
    before: Block | None = None
    after: Block | None = None


@dataclass(slots=True, eq=False)
class Pool:
    """The free blocks of one stream, by (size, address): those of requests up to 1 MiB, or the others."""

    small: bool
    blocks: list[tuple[int, int, Block]] = field(default_factory=list)
    tail: Block | None = None
    """Of an expandable segment: its last block, which is never mapped whole."""

    def put(self, block: Block) -> None:
        """Offers a block."""
        block.free = True
        bisect.insort(self.blocks, (block.size, block.address, block))

    def take(self, block: Block) -> None:
        """Withdraws a free block."""
        block.free = False
        self.blocks.pop(bisect.bisect_left(self.blocks, (block.size, block.address)))


class OutOfMemoryError(Exception):
    """No segment fits under the cap, even after the cache is flushed."""


class CachingAllocator:
    """Hands out blocks; `cap_bytes`: cudaMalloc fails beyond it, the cache is then flushed and the request tried again."""

    def __init__(self, cap_bytes: int | None = None) -> None:
        self.cap_bytes = cap_bytes
        self.pools: dict[tuple[str, bool], Pool] = {}
        self.top = self.allocated = self.reserved = self.highest_allocated = self.highest_reserved = 0
        self.flushes = 0

    def malloc(self, nbytes: int, stream: str = "") -> Block:
        """A block for a request of a stream; raises OutOfMemoryError."""
        size = max(ROUND, -(-nbytes // ROUND) * ROUND)
        pool = self.pools.get((stream, size <= SMALL))
        if pool is None:
            pool = self.pools[stream, size <= SMALL] = Pool(size <= SMALL)
        block = self._find(pool, size) or self._more(pool, size)
        if self._splits(block, size):
            self._split(block, size)
        block.free = False
        self.allocated += block.size
        self.highest_allocated = max(self.highest_allocated, self.allocated)
        return block

    def _find(self, pool: Pool, size: int) -> Block | None:
        """The smallest free block that is large enough."""
        i = bisect.bisect_left(pool.blocks, (size, -1))
        return pool.blocks.pop(i)[2] if i < len(pool.blocks) else None

    def _more(self, pool: Pool, size: int) -> Block:
        """A segment of its own."""
        want = SMALL_SEGMENT if pool.small else LARGE_SEGMENT if size < OWN_SEGMENT_FROM else -(-size // SEGMENT_ROUND) * SEGMENT_ROUND
        if not self._fits(want):
            self.flush()
            if not self._fits(want):
                raise OutOfMemoryError
        block = Block(self.top, want, pool)
        self.top += want + SEGMENT_ROUND  # segments never touch
        self._reserve(want)
        return block

    def _fits(self, more: int) -> bool:
        return self.cap_bytes is None or self.reserved + more <= self.cap_bytes

    def _reserve(self, more: int) -> None:
        self.reserved += more
        self.highest_reserved = max(self.highest_reserved, self.reserved)

    def _splits(self, block: Block, size: int) -> bool:
        rest = block.size - size
        return rest >= ROUND if block.pool.small else rest > MIB

    @staticmethod
    def _split(block: Block, size: int) -> None:
        tail = Block(block.address + size, block.size - size, block.pool, before=block, after=block.after)
        if block.after is not None:
            block.after.before = tail
        block.after, block.size = tail, size
        block.pool.put(tail)

    def free(self, block: Block) -> None:
        """Gives a block back and joins it with free neighbours."""
        self.allocated -= block.size
        self._join(block)

    @staticmethod
    def _join(block: Block) -> None:
        pool = block.pool
        if block.before is not None and block.before.free:
            head = block.before
            pool.take(head)
            head.size += block.size
            head.after = block.after
            if block.after is not None:
                block.after.before = head
            block = head
        if block.after is not None and block.after.free:
            tail = block.after
            pool.take(tail)
            block.size += tail.size
            block.after = tail.after
            if tail.after is not None:
                tail.after.before = block
        pool.put(block)

    def flushable(self) -> list[Pool]:
        """The pools that give memory back."""
        return [pool for (stream, _), pool in self.pools.items() if not stream.startswith(PRIVATE)]

    def flush(self) -> None:
        """Returns every wholly free segment to the driver (release_cached_blocks)."""
        self.flushes += 1
        for pool in self.flushable():
            kept = [entry for entry in pool.blocks if entry[2].before is not None or entry[2].after is not None]
            self.reserved -= sum(entry[0] for entry in pool.blocks) - sum(entry[0] for entry in kept)
            pool.blocks = kept
