"""A meter that decides nothing: it keeps every moment that may be a highest one, as polynomials (`forms.py`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from peakgate.memory.dominance import grows, is_below, shrinks
from peakgate.memory.forms import added, block_of, made, terms_of, times_as_much
from peakgate.memory.meter import WALKED, Meter, exact
from peakgate.memory.pools import COMPUTE
from peakgate.memory.trace import Terms, Trace

Parts = Mapping[str, Terms]


@dataclass(frozen=True, slots=True)
class Moment:
    """Live bytes, their blocks, the blocks by category, and those that other CUDA streams than the model's own hold."""

    live: Terms
    blocks: Terms
    by: Parts
    streams: Parts

    def changed(self, live: Terms, blocks: Terms, category: str, stream: str, sign: int) -> Moment:
        """The moment after an allocation (`sign` 1) or a free (-1)."""
        by = {**self.by, category: added(self.by[category], blocks, sign)}
        streams = self.streams if stream == COMPUTE else {**self.streams, stream: added(self.streams.get(stream, {}), blocks, sign)}
        return Moment(added(self.live, live, sign), added(self.blocks, blocks, sign), by, streams)

    def later(self, net: Moment, times: int) -> Moment:
        """The same moment after `times` repetitions of what changes the bytes by `net`."""
        live, blocks = _later(self.live, net.live, times), _later(self.blocks, net.blocks, times)
        return Moment(live, blocks, _sum(self.by, net.by, times), _sum(self.streams, net.streams, times))


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of the timeline: the blocks of the moments of which one is its highest, and what each of `times` repetitions adds."""

    phase: str
    label: str
    rows: Sequence[Terms]
    net: Terms = field(default_factory=dict)
    times: int = 1


EMPTY = Moment({}, {}, {category: {} for category in WALKED}, {})


class Recorder(Meter):
    """Moments by phase, in their order. `blocks`: whether requests are rounded to the allocator's blocks."""

    def __init__(self, trace: Trace, ignored: frozenset[str] = frozenset(), *, rounds: bool = False) -> None:
        super().__init__(block_of if rounds else exact, ignored)
        self.trace, self.now, self.rising = trace, EMPTY, False
        self.open: list[Moment] = []
        self.moments: dict[str, list[Moment]] = {}
        self.spans: list[Span] = []

    def add(self, nbytes: int, block: int, category: str, stream: str = "") -> int:
        """Counts an allocation."""
        if category not in self.ignored:
            self.now = self.now.changed(terms_of(nbytes), terms_of(block), category, stream, 1)
            self.rising = True
        return 0

    def sub(self, nbytes: int, block: int, category: str, number: int, stream: str = "") -> None:  # noqa: ARG002 - as Meter's
        """Counts a free: the moment before may have been a highest one."""
        if category not in self.ignored:
            self._keep()
            self.now = self.now.changed(terms_of(nbytes), terms_of(block), category, stream, -1)

    def move(self, nbytes: int, block: int, old: str, new: str, stream: str = "") -> None:
        """The same bytes under another category."""
        if old in self.ignored:
            self.add(nbytes, block, new, stream)
            return
        self._keep()
        terms = terms_of(block)
        by = {**self.now.by, old: added(self.now.by[old], terms, -1)}
        by[new] = added(by[new], terms)
        self.now = Moment(self.now.live, self.now.blocks, by, self.now.streams)

    def live_now(self) -> int:
        """Live bytes at this moment."""
        return made(self.trace, self.now.live)

    def blocks_now(self, category: str) -> int:
        """Blocks of a category at this moment."""
        return made(self.trace, self.now.by[category])

    def enter(self, phase: str) -> None:
        """Closes the current phase and starts another."""
        self._keep()
        if self.phase:
            self.moments.setdefault(self.phase, []).extend(self.open)
        self.phase, self.open = phase, [self.now]

    def forget(self) -> None:
        """Starts over: what was seen so far was not the steady state."""
        self.moments, self.spans, self.phase, self.open, self.rising = {}, [], "", [], False

    @contextmanager
    def repeated(self, times: int, label: str = "") -> Iterator[None]:
        """What happens inside is walked once and stands for `times` equal repetitions, of which the first or the last is the highest."""
        self._keep()
        outer, before, self.open = self.open, self.now, [self.now]
        yield
        self._keep()
        net = self.now.later(before, -1)
        inside = highest(self.open)
        if label:
            self.spans.append(Span(self.phase, label, [moment.blocks for moment in inside], net.blocks, times))
        last = times > 1 and not (shrinks(net.blocks) and shrinks(net.live))
        first = not last or not (grows(net.blocks) and grows(net.live))
        self.open = outer + (inside if first else []) + ([moment.later(net, times - 1) for moment in inside] if last else [])
        self.now = self.now.later(net, times - 1)

    def mark(self, label: str) -> None:
        """A timeline point at the current moment."""
        self.spans.append(Span(self.phase, label, [self.now.blocks]))

    def mark_high(self, label: str) -> None:
        """A timeline point at the highest moment of the phase so far."""
        self._keep()
        self.spans.append(Span(self.phase, label, [moment.blocks for moment in highest(self.open)]))

    def _keep(self) -> None:
        if self.rising:
            self.open.append(self.now)
            self.rising = False


def highest(moments: list[Moment]) -> list[Moment]:
    """The moments without those that the next one or the one before is above of, whatever the sizes."""
    kept: list[Moment] = []
    for moment in moments:
        if kept and _below(moment, kept[-1]):
            continue
        while kept and _below(kept[-1], moment) and kept[-1].blocks != moment.blocks:
            kept.pop()
        kept.append(moment)
    return kept


def _below(moment: Moment, other: Moment) -> bool:
    return is_below(moment.blocks, other.blocks) and is_below(moment.live, other.live) and not moment.streams and not other.streams


def _later(terms: Terms, net: Terms, times: int) -> Terms:
    return added(terms, times_as_much(net, times))


def _sum(parts: Parts, more: Parts, times: int) -> Parts:
    return {key: _later(parts.get(key, {}), more.get(key, {}), times) for key in (*parts, *(key for key in more if key not in parts))}
