"""Expandable segments: one segment a pool that grows and shrinks in pages (PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True).

Rules (c10/cuda/CUDACachingAllocator.cpp, struct ExpandableSegment, get_free_block, find_expandable_block, map_block, unmap_block): pages
of 2 MiB below the 1 MiB limit and of 20 MiB above; blocks are split from 512 B on; a free block in front of addresses without memory
counts as large as it could grow, so that it is used last; a flush takes every whole page that lies in a free block.
"""

from __future__ import annotations

import bisect

from peakgate.memory.allocator import LARGE_SEGMENT, ROUND, SMALL_SEGMENT, Block, CachingAllocator, OutOfMemoryError, Pool

ADDRESSES = LARGE_SEGMENT << 26
"""Of one segment, whole pages: more than any card has (the driver reserves 9/8 of the card's memory)."""


class ExpandableAllocator(CachingAllocator):
    """The same allocator where each pool is one growing segment."""

    def _splits(self, block: Block, size: int) -> bool:
        return block.size - size >= ROUND

    def _find(self, pool: Pool, size: int) -> Block | None:
        """The smallest free block that is large enough, where one that can grow counts as grown."""
        i, blocks = bisect.bisect_left(pool.blocks, (size, -1)), pool.blocks
        if i == len(blocks):
            return None
        while i + 1 < len(blocks) and _grown(blocks[i + 1][2]) < _grown(blocks[i][2]):
            i += 1
        return blocks.pop(i)[2]

    def _more(self, pool: Pool, size: int) -> Block:
        if pool.tail is None:
            self.top += ADDRESSES
            pool.tail = Block(self.top, ADDRESSES, pool, mapped=False)
        try:
            return self._grow(pool, size)
        except OutOfMemoryError:
            self.flush()
            return self._grow(pool, size)

    def _grow(self, pool: Pool, size: int) -> Block:
        """The first run of free addresses that is long enough, with memory behind it."""
        block = _room(pool, size)
        if not block.mapped:
            block = self._map(block, min(block.size, size))
        while block.size < size:
            hole = block.after
            if hole is None:
                raise OutOfMemoryError
            block = self._map(hole, min(hole.size, size - block.size))
        pool.take(block)
        return block

    def _map(self, hole: Block, size: int) -> Block:
        """Puts whole pages behind the first addresses of a hole, and joins them with what is free around them."""
        page = SMALL_SEGMENT if hole.pool.small else LARGE_SEGMENT
        want = min(hole.size, -(-size // page) * page)
        if not self._fits(want):
            raise OutOfMemoryError
        self._reserve(want)
        if want < hole.size:
            rest = Block(hole.address + want, hole.size - want, hole.pool, mapped=False, before=hole, after=hole.after)
            if hole.after is not None:
                hole.after.before = rest
            hole.after, hole.size = rest, want
            if hole.pool.tail is hole:
                hole.pool.tail = rest
        hole.mapped = True
        before = hole.before
        self._join(hole)
        return before if before is not None and before.free else hole

    def flush(self) -> None:
        """Takes the memory behind every whole page of a free block (release_expandable_segment, unmap_block)."""
        self.flushes += 1
        for pool in self.flushable():
            page = SMALL_SEGMENT if pool.small else LARGE_SEGMENT
            for _, _, block in list(pool.blocks):
                start, end = -(-block.address // page) * page, (block.address + block.size) // page * page
                if end > start:
                    self._unmap(pool, block, start, end)

    def _unmap(self, pool: Pool, block: Block, start: int, end: int) -> None:
        pool.take(block)
        self.reserved -= end - start
        if block.address + block.size > end:
            self._split(block, end - block.address)
        if start > block.address:
            head = Block(block.address, start - block.address, pool, before=block.before, after=block)
            if block.before is not None:
                block.before.after = head
            block.before, block.address, block.size = head, start, block.size - head.size
            pool.put(head)
        block.mapped, block.free = False, False
        _join_holes(block)


def _grown(block: Block) -> int:
    after = block.after
    return block.size + (after.size if after is not None and not after.mapped else 0)


def _room(pool: Pool, size: int) -> Block:
    """The first hole, with what is free in front of it, whose run of free addresses holds `size` bytes."""
    hole = pool.tail
    if hole is None:
        raise OutOfMemoryError
    first: Block = hole
    holes = [hole]
    while first.before is not None:
        first = first.before
        if not first.mapped:
            holes.append(first)
    for each in reversed(holes):
        start = each.before if each.before is not None and each.before.free else each
        if _run(start, size):
            return start
    raise OutOfMemoryError


def _run(block: Block, size: int) -> bool:
    length, at = 0, block
    while length < size and (at.free or not at.mapped):
        length += at.size
        if at.after is None:
            break
        at = at.after
    return length >= size


def _join_holes(block: Block) -> None:
    """Neighbouring addresses without memory are one hole."""
    before, after, pool = block.before, block.after, block.pool
    if after is not None and not after.mapped:
        block.size += after.size
        block.after = after.after
        if after.after is not None:
            after.after.before = block
        if pool.tail is after:
            pool.tail = block
    if before is not None and not before.mapped:
        before.size += block.size
        before.after = block.after
        if block.after is not None:
            block.after.before = before
        if pool.tail is block:
            pool.tail = before
