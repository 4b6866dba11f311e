"""Which versions of the calibration are kept. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from peakgate.server.store.records import KEPT_KINDS

NEWEST_KEPT = 50
"""Newest versions that are kept whatever they are for: rows that come late go on from a near one (rebuild.py)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """A version in the tree of all: `parent` is the sequence of the one that it was made from, 0 or one that is gone: none."""

    sequence: int
    parent: int
    state: str
    kind: str
    created_us: int


@dataclass(frozen=True, slots=True)
class Gone:
    """A version that goes. What it had taken in is said of its only child from then on, whose parent becomes its parent."""

    sequence: int
    child: int
    parent: int


def thinned(versions: Iterable[Version], *, kept_from_us: int, newest_kept: int = NEWEST_KEPT, edges: Collection[int] = ()) -> list[Gone]:
    """The versions that go, in this order; `child` is 0 where a line ends.

    Kept are those in use, the newest ones, those that are kept for a reason and were made from `kept_from_us` on, and one from which
    two lines part while both are there: what it had taken in belongs to both. So it is with `edges`, where what a shadow learned begins
    or ends.
    """
    tree = {each.sequence: each for each in versions}
    children: dict[int, list[int]] = {}
    for each in tree.values():
        children.setdefault(each.parent, []).append(each.sequence)
    gone = []
    for sequence in sorted(tree, reverse=True)[newest_kept:]:
        version, mine = tree[sequence], children.get(sequence, [])
        if (
            len(mine) > 1
            or sequence in edges
            or version.state != "retired"
            or (version.kind in KEPT_KINDS and version.created_us >= kept_from_us)
        ):
            continue
        gone.append(Gone(sequence, mine[0] if mine else 0, version.parent))
        siblings = [each for each in children.get(version.parent, []) if each != sequence]
        children[version.parent] = siblings + mine
        for child in mine:
            tree[child] = replace(tree[child], parent=version.parent)
    return gone
