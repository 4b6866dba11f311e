"""The level of each group: how far its jobs lie from the prediction, shrunk towards its framework and then towards all jobs.

A group is named framework/sharding/precision; its parent is the framework, whose parent is everything. The level of a node
is the median of its scores, pulled to the level of its parent by GROUP_ROWS rows. A median, because up to half of the rows
may be wrong without moving it far.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from peakgate.calibration.prior import GROUP_ROWS

EVERYTHING = ""
TEXTBOOK = "textbook"


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """One observation in units of the spread of its requirement; not exact: the need is at least that."""

    group: str
    value: float
    exact: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A group or a parent: its level in spreads, the rising scores behind it, how many observations were exact."""

    level: float
    scores: tuple[float, ...]
    exact_rows: int


def is_textbook(group: str) -> bool:
    """True for the seeds' accounting, which leaves the runtime out and therefore shares nothing with other frameworks."""
    return group.split("/", 1)[0] == TEXTBOOK


def path(group: str) -> tuple[str, ...]:
    """The names from the farthest parent to the group itself."""
    framework = group.split("/", 1)[0]
    names = (framework, group) if framework == TEXTBOOK else (EVERYTHING, framework, group)
    return tuple(dict.fromkeys(names))


def nodes_of(scores: Iterable[Score]) -> Mapping[str, Node]:
    """Every node that has an observation below it, by name."""
    by_name: dict[str, list[Score]] = {}
    for score in scores:
        for name in path(score.group):
            by_name.setdefault(name, []).append(score)
    nodes: dict[str, Node] = {}
    for name in sorted(by_name, key=lambda each: len(path(each))):
        nodes[name] = _node(by_name[name], level_of(nodes, name))
    return nodes


def level_of(nodes: Mapping[str, Node], group: str) -> float:
    """The level of a group, or of the nearest parent that has one; 0 when nothing was observed."""
    return next((nodes[name].level for name in reversed(path(group)) if name in nodes), 0.0)


def level_without(nodes: Mapping[str, Node], score: Score) -> float:
    """The level that the score's group has without that score: what a prediction would have used."""
    level = 0.0
    for name in path(score.group):
        ordered = nodes[name].scores
        index = bisect_left(ordered, score.value)
        found = index < len(ordered) and ordered[index] == score.value
        level = _shrunk(ordered, level, left_out=index) if found else _shrunk(ordered, level)
    return level


def median(ordered: Sequence[float], left_out: int | None = None) -> float:
    """Median of rising values, as if the one at `left_out` were not there, in constant time.

    Raises IndexError when nothing is left.
    """
    kept = len(ordered) if left_out is None else len(ordered) - 1

    def at(place: int) -> float:
        return ordered[place] if left_out is None or place < left_out else ordered[place + 1]

    return (at((kept - 1) // 2) + at(kept // 2)) / 2


def _node(scores: Sequence[Score], parent_level: float) -> Node:
    exact = sorted(score.value for score in scores if score.exact)
    # A lower bound under the level says nothing; one above it says "at least", and counts at its lowest.
    usual = median(exact) if exact else parent_level
    at_least = (score.value for score in scores if not score.exact and score.value > usual)
    counted = tuple(sorted((*exact, *at_least)))
    return Node(level=_shrunk(counted, parent_level), scores=counted, exact_rows=len(exact))


def _shrunk(ordered: Sequence[float], parent_level: float, left_out: int | None = None) -> float:
    rows = len(ordered) - (left_out is not None)
    if rows == 0:
        return parent_level
    return (rows * median(ordered, left_out) + GROUP_ROWS * parent_level) / (rows + GROUP_ROWS)
