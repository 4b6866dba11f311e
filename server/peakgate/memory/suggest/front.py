"""The front of memory against time: plans that no other one beats in both."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from peakgate.memory.suggest.search import MOST_PARTS, SAME_TIME, Found, found_at
from peakgate.memory.suggest.space import Evaluated, Space

MOST_POINTS = 16
"""Points of a front that a person can read."""


def front(space: Space, effort: int) -> tuple[Found, ...]:
    """The fastest plan of each memory, fastest first, found with so much `effort`; choices of few levers come first."""
    evaluated = [each for each in (space.evaluate(node) for node in _nodes(space, space.effort + effort)) if each is not None]
    points = sorted((float(time), int(need), place, index) for place, each in enumerate(evaluated) for index, (time, need) in _plans(each))
    kept: list[Found] = []
    for time, need, place, index in points:
        if not kept or need < kept[-1].required_bytes:
            if kept and time - kept[-1].time < SAME_TIME:
                kept.pop()
            kept.append(found_at(space, evaluated[place], index))
    return _thinned(kept)


def _plans(evaluated: Evaluated) -> Iterator[tuple[int, tuple[float, int]]]:
    return enumerate(zip(evaluated.time, evaluated.required, strict=True))


def _nodes(space: Space, effort: int) -> Iterator[tuple[int, ...]]:
    """Choices of levers, small ones first."""
    layer: list[tuple[int, ...]] = [()]
    for _ in range(MOST_PARTS + 1):
        for node in layer:
            if space.effort >= effort:
                return
            yield node
        layer = [child for node in layer for child in _children(space, node)]


def _children(space: Space, node: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    taken = {space.options[place].lever for place in node}
    for place in range(node[-1] + 1 if node else 0, len(space.options)):
        if space.options[place].lever not in taken:
            yield (*node, place)


def _thinned(points: list[Found]) -> tuple[Found, ...]:
    """At most MOST_POINTS of them, spread evenly, the ends among them."""
    if len(points) <= MOST_POINTS:
        return tuple(points)
    places = np.unique(np.linspace(0, len(points) - 1, MOST_POINTS).round().astype(int))
    return tuple(points[place] for place in places)
