"""Counts live bytes while a step is walked: the highest moment of each phase, its ledger, and a timeline.

Two counts run side by side: `live`, the tensors byte for byte, and `blocks`, what the caching allocator hands out for them
(`allocator.block_bytes`), which is what `torch.cuda.max_memory_allocated` prints.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from peakgate.memory.pools import Pools

WALKED = ("activations", "logits", "gradients", "temporaries", "communication")
"""Categories that change during a step; the resident states are added by the caller."""

Event = tuple[int, int]
"""(allocation number, bytes); negative bytes free it."""


def exact(nbytes: int) -> int:
    """A request as it is, where no allocator makes blocks of it."""
    return nbytes


@dataclass(frozen=True, slots=True)
class High:
    """The highest moment of a phase: bytes, blocks, and the blocks by category."""

    live: int
    blocks: int
    by: dict[str, int]


@dataclass(frozen=True, slots=True)
class Point:
    """The highest blocks of one stretch of the step."""

    phase: str
    label: str
    blocks: int


@dataclass(slots=True)
class Meter:
    """Live bytes of one rank. `ignored` categories are not counted at all (the textbook counts no temporaries)."""

    block_bytes: Callable[[int], int]
    ignored: frozenset[str] = frozenset()
    events: list[Event] | None = None
    live: int = 0
    blocks: int = 0
    by: dict[str, int] = field(default_factory=lambda: dict.fromkeys(WALKED, 0))
    high_live: int = 0
    high_blocks: int = 0
    high_by: dict[str, int] = field(default_factory=lambda: dict.fromkeys(WALKED, 0))
    phase: str = ""
    highs: dict[str, High] = field(default_factory=dict)
    points: list[Point] = field(default_factory=list)
    numbers: int = 0
    pools: Pools = field(default_factory=Pools)
    streams: dict[int, str] = field(default_factory=dict)
    """CUDA streams of the recorded allocations that are not made on the compute stream."""

    def add(self, nbytes: int, block: int, category: str, stream: str = "") -> int:
        """Counts an allocation and gives its number in the event list."""
        if category not in self.ignored:
            self.pools.add(block, stream)
            self.live += nbytes
            self.blocks += block
            self.by[category] += block
            if self.live > self.high_live:
                self.high_live = self.live
            if self.blocks > self.high_blocks:
                self.high_blocks, self.high_by = self.blocks, self.by.copy()
        self.numbers += 1
        if self.events is not None and nbytes:
            self.events.append((self.numbers, nbytes))
            if stream:
                self.streams[self.numbers] = stream
        return self.numbers

    def sub(self, nbytes: int, block: int, category: str, number: int, stream: str = "") -> None:
        """Counts a free."""
        if category not in self.ignored:
            self.pools.now[stream] -= block
            self.live -= nbytes
            self.blocks -= block
            self.by[category] -= block
        if self.events is not None and nbytes:
            self.events.append((number, -nbytes))

    def move(self, nbytes: int, block: int, old: str, new: str, stream: str = "") -> None:
        """The same bytes under another category."""
        if old in self.ignored:
            events, self.events = self.events, None
            self.add(nbytes, block, new, stream)
            self.events = events
        else:
            self.by[old] -= block
            self.by[new] += block

    def live_now(self) -> int:
        """Live bytes at this moment."""
        return self.live

    def blocks_now(self, category: str) -> int:
        """Blocks of a category at this moment."""
        return self.by[category]

    def enter(self, phase: str) -> None:
        """Closes the current phase and starts another; a phase that comes again keeps its highest moment."""
        if self.phase:
            self._close()
        self.phase = phase
        self.high_live, self.high_blocks, self.high_by = self.live, self.blocks, dict(self.by)

    def _close(self) -> None:
        high, known = High(self.high_live, self.high_blocks, self.high_by), self.highs.get(self.phase)
        if known is not None:
            top = high if high.blocks > known.blocks else known
            high = High(max(high.live, known.live), top.blocks, top.by)
        self.highs[self.phase] = high

    def forget(self) -> None:
        """Starts over: what was seen so far was not the steady state."""
        self.highs, self.points, self.phase = {}, [], ""
        self.pools.forget()

    @contextmanager
    def repeated(self, times: int, label: str = "") -> Iterator[None]:
        """What happens inside is walked once and stands for `times` equal repetitions.

        Each repetition changes the live bytes by the same amount, so the highest is the first or the last.
        """
        live, blocks, by = self.live, self.blocks, dict(self.by)
        outer = self.high_live, self.high_blocks, self.high_by
        self.high_live, self.high_blocks, self.high_by = live, blocks, dict(by)
        with self.pools.repeated(times):
            yield
        more = times - 1
        net_live, net_blocks = self.live - live, self.blocks - blocks
        net_by = {key: self.by[key] - by[key] for key in by}
        self._draw(label, times, net_blocks)
        if net_blocks > 0:
            self.high_blocks += more * net_blocks
            self.high_by = {key: size + more * net_by[key] for key, size in self.high_by.items()}
        self.high_live += max(0, more * net_live)
        self.high_live = max(self.high_live, outer[0])
        if outer[1] >= self.high_blocks:  # of equal ones the first
            self.high_blocks, self.high_by = outer[1], outer[2]
        self.live += more * net_live
        self.blocks += more * net_blocks
        self.by = {key: size + more * net_by[key] for key, size in self.by.items()}

    def _draw(self, label: str, times: int, net_blocks: int) -> None:
        """A timeline point for each repetition."""
        if label:
            high = self.high_blocks
            self.points += [Point(self.phase, label, high + i * net_blocks) for i in range(times)]

    def mark(self, label: str) -> None:
        """A timeline point at the current moment."""
        self.points.append(Point(self.phase, label, self.blocks))

    def mark_high(self, label: str) -> None:
        """A timeline point at the highest moment of the phase so far."""
        self.points.append(Point(self.phase, label, self.high_blocks))
