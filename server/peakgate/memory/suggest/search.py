"""The cheapest plans that fit, in the order of their step time.

A node is a choice of levers, and with it come all micro-batches and degrees that are legal beside it, evaluated at once. Nodes are visited
cheapest first, each set of levers once. Two things keep the search small, and both only leave out what cannot be better:
a choice that already fits at the job's own micro-batch needs no more levers but those that make it faster, and one that does not fit with
every free lever after it on top does not fit with some of them. Levers that are not free are taken not to save time.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from math import inf

import numpy as np

from peakgate.memory.suggest.levers import OPTIONS, Changes, Option
from peakgate.memory.suggest.space import Evaluated, Space

MOST_PARTS = 5
"""Levers of one suggestion: nobody wants to change more at once."""

SAME_TIME = 0.005
"""Step times that differ by less rank as equal: the costs are not that exact."""


WORTH_A_LEVER = 0.02
"""A lever that is not needed for the fit stays in a plan when it saves more of a step."""

SLOW = 5.0
"""Times the step of the job: nobody waits so much longer where there is anything else."""

UNKNOWN = 0.5
"""Faster than any lever makes a step: one that may save time is tried alone before dearer ones are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A plan of the space. `over_bytes`: what the card lacks, negative where it has more."""

    chosen: tuple[Option, ...]
    changes: Changes
    numbers: dict[str, int]
    required_bytes: int
    over_bytes: int
    host_bytes: int
    time: float

    @property
    def kind(self) -> frozenset[str]:
        """What it is about: plans that differ in less than that are told apart by nobody."""
        fields = {path for path, _ in self.changes if path.startswith("batch.")}
        return frozenset(fields | {option.kind for option in self.chosen})

    @property
    def about(self) -> frozenset[str]:
        """Its levers."""
        fields = {"batch" for path, _ in self.changes if path.startswith("batch.")}
        return frozenset(fields | {option.lever for option in self.chosen})

    @property
    def rank(self) -> tuple[int, float, int, int, int]:
        """What alters least beside memory and time first, then the cheapest, of equally fast ones that with the fewest changes, then the
        first of the table, which has the lesson's order."""
        place = max((OPTIONS.index(option) for option in self.chosen if option in OPTIONS), default=0)
        altered = len({option.alters for option in self.chosen if option.alters})
        return altered, round(self.time / (2 * SAME_TIME)), len(self.chosen) + len(self.changes), place, self.required_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """Plans that fit, best first; the plan that comes nearest; how many plans were looked at."""

    found: tuple[Found, ...]
    closest: Found | None
    plans: int


def search(space: Space, *, most: int = 5, effort: int = 200) -> Result:
    """The `most` best plans that fit and need each of their changes, one of a kind, until the search has cost so much `effort`."""
    visit = _Visit(space, most, space.effort + effort)
    visit.run()
    if all(each.time > SLOW for each in visit.found.values()):
        visit.add_up()
    best = visit.best()
    sensible = [each for each in best if each.time <= SLOW]
    return Result(found=tuple((sensible or best[:1])[:most]), closest=visit.closest, plans=space.plans)


def found_at(space: Space, evaluated: Evaluated, index: int) -> Found:
    """One plan of a choice."""
    return Found(
        chosen=evaluated.chosen,
        changes=space.changes(evaluated, index),
        numbers={name: int(values[index]) for name, values in evaluated.numbers.items()},
        required_bytes=int(evaluated.required[index]),
        over_bytes=int(evaluated.over[index]),
        host_bytes=int(evaluated.host[index]),
        time=float(evaluated.time[index]),
    )


class _Visit:
    def __init__(self, space: Space, most: int, effort: int) -> None:
        self.space, self.most, self.effort = space, most, effort
        self.found: dict[tuple[int, ...], Found] = {}
        self.closest: Found | None = None
        self.largest: dict[tuple[int, ...], int] = {}

    def run(self) -> None:
        queue: list[tuple[float, int, tuple[int, ...]]] = [(0.0, 0, ())]
        while queue and self.space.effort < self.effort:
            bound, _, node = heapq.heappop(queue)
            best = self.best()
            if len(best) >= self.most and bound > best[self.most - 1].time + SAME_TIME:
                return
            for child, time in self._visited(node):
                heapq.heappush(queue, (time, len(child), child))

    def add_up(self) -> None:
        """The strongest option of each lever on top of the others until the job fits, and then without those that it fits without."""
        node: tuple[int, ...] = ()
        for places in self._strongest():
            grown = tuple(sorted({*node, *places}))
            if len(grown) > len(node) and self._lacks(grown) < self._lacks(node):
                node = grown
            if node in self.found and self.found[node].time <= SLOW:
                break
        for place in sorted(node, key=lambda each: self.space.options[each].free) if node in self.found else ():
            rest = tuple(each for each in node if each != place)
            if self._lacks(rest) <= 0:
                del self.found[node], self.largest[node]
                node = rest

    def _strongest(self) -> Iterator[list[int]]:
        """All free levers, then the strongest option of each dear one: the last of the table that goes all the way."""
        options, strongest = self.space.options, dict[str, int]()
        for place, option in enumerate(options):
            if option.whole and not option.single_step:
                strongest[option.lever] = place
        yield [place for place in strongest.values() if options[place].free]
        yield from ([place] for place in strongest.values() if not options[place].free)

    def _lacks(self, node: tuple[int, ...]) -> float:
        """Bytes that the card lacks for the best plan of a node, which is noted."""
        evaluated = self.space.evaluate(node)
        if evaluated is None:
            return inf
        self._note(node, evaluated)
        return 0 if evaluated.fits.any() else max(1, int(evaluated.over.min()))

    def best(self) -> list[Found]:
        """What was found so far, best first; of one kind the best, and nothing that part of its levers do as well and as fast."""
        kinds: dict[frozenset[str], Found] = {}
        for node, found in sorted(self.found.items(), key=lambda each: each[1].rank):
            if not self._has_spare_part(node):
                kinds.setdefault(found.kind, found)
        plans = list(kinds.values())
        return [each for each in plans if not any(other.about < each.about and other.time <= each.time for other in plans)]

    def _has_spare_part(self, node: tuple[int, ...]) -> bool:
        """Whether it fits as well, and is about as fast, without one of its levers."""
        size, time = self.largest[node], self.found[node].time + WORTH_A_LEVER
        parts = (node[:at] + node[at + 1 :] for at in range(len(node)))
        return any(self.largest.get(part, 0) >= size and self.found[part].time <= time for part in parts)

    def _visited(self, node: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], float]]:
        """Notes what a node has to offer; its children with a bound of their time."""
        evaluated = self.space.evaluate(node)
        if evaluated is None:
            if len(node) > 1 and self.space.options[node[-1]].degree == "":
                return
            time = 1.0  # what is not legal alone may be beside another lever: checkpoints on the host beside checkpointing
        else:
            time = float(evaluated.time.min())
            self._note(node, evaluated)
        if len(node) == MOST_PARTS:
            return
        enough = self.largest.get(node) == self.space.plan.micro_batch
        free_helps = not enough and self._free_helps(node)
        taken = {self.space.options[each].lever for each in node}
        for place in range(node[-1] + 1 if node else 0, len(self.space.options)):
            option, factor = self.space.options[place], self._factor(place)
            helps = factor < 1 - WORTH_A_LEVER or (not enough and (free_helps or not option.free))
            if option.lever not in taken and helps:
                yield (*node, place), time * factor

    def _note(self, node: tuple[int, ...], evaluated: Evaluated) -> None:
        index = evaluated.best()
        nearest = int(np.argmin(evaluated.over))
        if self.closest is None or evaluated.over[nearest] < self.closest.over_bytes:
            self.closest = found_at(self.space, evaluated, nearest)
        if index is None:
            return
        size = int(evaluated.numbers["micro_batch"][index])
        self.largest[node] = size
        self.found[node] = found_at(self.space, evaluated, index)

    def _free_helps(self, node: tuple[int, ...]) -> bool:
        """Whether a larger micro-batch fits with all free levers that come after the node's last."""
        taken = {self.space.options[each].lever for each in node}
        rest: list[int] = []
        for place in range(node[-1] + 1 if node else 0, len(self.space.options)):
            option = self.space.options[place]
            if option.free and not option.single_step and option.lever not in taken:
                rest.append(place)
                taken.add(option.lever)
        if not rest:
            return any(option.free for option in self.space.options[node[-1] + 1 if node else 0 :])
        evaluated = self.space.evaluate((*node, *rest))
        if evaluated is None:
            return True
        sizes = evaluated.numbers["micro_batch"][evaluated.fits]
        return len(sizes) > 0 and int(sizes.max()) > self.largest.get(node, 0)

    def _factor(self, place: int) -> float:
        """How much faster a lever may make a plan, from what it does alone; what it costs is not counted on."""
        alone = self.space.known.get((place,))
        if alone is None:
            return UNKNOWN if self.space.options[place].free else 1.0
        return min(1.0, float(alone.time.min()))
