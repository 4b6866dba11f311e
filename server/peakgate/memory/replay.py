"""Replays a run's allocations through the caching allocator: what it reserves, and the smallest card on which it completes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from peakgate.memory.allocator import MIB, Block, CachingAllocator, OutOfMemoryError
from peakgate.memory.expandable import ExpandableAllocator

GRAIN = 16 * MIB
"""How near the smallest cap is searched."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """Highest bytes of a replay."""

    allocated_bytes: int
    reserved_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """What a run allocates: the events of `load`, of which the rest stays, and `resident`; then each step's events.

    Events are (allocation number, bytes), with negative bytes to free it; `streams` names the CUDA stream of those that are not made on
    the compute stream. What a step leaves is freed when the next one begins (torch.optim.Optimizer.zero_grad), unless it `stays`.
    """

    resident: Sequence[int]
    steps: Sequence[Iterable[tuple[int, int]]]
    load: Sequence[tuple[int, int]] = ()
    late: Sequence[int] = ()
    """States that the optimizer makes in its first step (torch.optim.Adam: lazily)."""
    streams: Mapping[int, str] = field(default_factory=dict)
    expandable: bool = False
    stays: bool = False


def play(script: Script, cap_bytes: int | None = None) -> Replayed:
    """Plays a script; raises OutOfMemoryError under a cap that is too small."""
    allocator = (ExpandableAllocator if script.expandable else CachingAllocator)(cap_bytes)
    _events(allocator, script.load, script.streams, {})
    _stays(allocator, script.resident)
    blocks: dict[int, Block] = {}
    for i, events in enumerate(script.steps):
        _events(allocator, events, script.streams, blocks)
        if not i:
            _stays(allocator, script.late)
        while blocks and not script.stays:
            allocator.free(blocks.popitem()[1])
    return Replayed(allocated_bytes=allocator.highest_allocated, reserved_bytes=allocator.highest_reserved)


def _stays(allocator: CachingAllocator, sizes: Iterable[int]) -> None:
    for nbytes in sizes:
        if nbytes > 0:
            allocator.malloc(nbytes)


def _events(allocator: CachingAllocator, events: Iterable[tuple[int, int]], streams: Mapping[int, str], blocks: dict[int, Block]) -> None:
    """Allocates and frees by number; `blocks` are those that are there before and after."""
    malloc, free, stream_of = allocator.malloc, allocator.free, streams.get
    for number, nbytes in events:
        if nbytes > 0:
            blocks[number] = malloc(nbytes, stream_of(number, ""))
        elif number in blocks:
            free(blocks.pop(number))


def replay(resident: Iterable[int], steps: Iterable[Iterable[tuple[int, int]]], cap_bytes: int | None = None) -> Replayed:
    """The same for one stream and native segments."""
    return play(Script(resident=list(resident), steps=list(steps)), cap_bytes)


def smallest_cap(script: Script, seen: Replayed) -> int:
    """The smallest cap, to 16 MiB, under which the script completes: what the run needs of a card beside context and libraries."""
    low, high = seen.allocated_bytes, max(seen.reserved_bytes, seen.allocated_bytes)
    while high - low > GRAIN:
        middle = (low + high) // 2
        try:
            play(script, middle)
            high = middle
        except OutOfMemoryError:
            low = middle
    return high
