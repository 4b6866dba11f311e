"""The rows of the table of cards that a submission may be given cards of. Pure, and quick: a controller waits meanwhile."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import lru_cache

from peakgate.hooks.slurm.card_table import CardTable, Row
from peakgate.hooks.slurm.features import satisfies
from peakgate.hooks.slurm.nodes import expanded
from peakgate.hooks.slurm.submission import Submission

MOST_ASKED_NODES = 4096
"""A request that names more nodes leaves none out."""

Said = tuple[Row, Row]
"""The row that says where cards are, and the one that says what they are: the same, or a person's above it."""


def rows_for(table: CardTable, submission: Submission, kind: str) -> list[Said]:
    """Of one type, or of all where none was asked for: in the partitions, with the features and on the nodes that were asked for.

    A row that names neither says how much memory a type has, and not where it is: it speaks for those below it, and stands for itself
    only where there are none.
    """
    asked = frozenset(submission.partitions or filter(None, (table.default_partition,)))
    held = [row for row in _with_room(table, submission) if not kind or row.type.lower() == kind.lower()]
    held = [row for row in held if _is_in(row, submission, asked)]
    wanted, excluded = _asked_nodes(submission.node_list), _asked_nodes(submission.excluded)
    if wanted or excluded:
        held = [row for row in held if not row.nodes or _has_one(node_names(row.nodes), wanted, excluded)]
    return list(_placed(held, asked)) or [(row, row) for row in held[: 1 if kind else None]]


def _with_room(table: CardTable, submission: Submission) -> Iterator[Row]:
    """Nodes that have as many cards, of whatever types, as are asked for on one."""
    each, most = submission.gpus_per_node, Counter[str]()
    for row in table.cards:
        most[row.nodes] += row.count
    for row in table.cards:
        if each is None or not row.nodes or not most[row.nodes] or each.count <= most[row.nodes]:
            yield row


def _is_in(row: Row, submission: Submission, asked: frozenset[str]) -> bool:
    if row.partitions and asked and asked.isdisjoint(row.partitions):
        return False
    return not submission.features or not (row.features or row.nodes) or satisfies(row.features, submission.features)


def _asked_nodes(text: str) -> frozenset[str]:
    names = expanded(text, most=MOST_ASKED_NODES) if text else ()
    return frozenset(names) if len(names) <= MOST_ASKED_NODES else frozenset()


def _has_one(nodes: frozenset[str], wanted: frozenset[str], excluded: frozenset[str]) -> bool:
    left = nodes & wanted if wanted else nodes
    return not left <= excluded


def _placed(rows: list[Row], asked: frozenset[str]) -> Iterator[Said]:
    stated: dict[str, list[Row]] = {}
    for row in rows:
        mine = stated.setdefault(row.type.lower(), [])
        if row.nodes or row.partitions or row.features:
            yield row, next((before for before in mine if _covers(before, row, asked)), row)
        if row.is_stated:
            mine.append(row)


def _covers(before: Row, row: Row, asked: frozenset[str]) -> bool:
    """Whether a person's row holds wherever a later one of its type would."""
    if before.partitions and not (asked and asked.issubset(before.partitions)):
        return False
    if not before.nodes:
        return not before.features
    return bool(row.nodes) and node_names(row.nodes) <= node_names(before.nodes)


@lru_cache(maxsize=4096)
def node_names(text: str) -> frozenset[str]:
    """The nodes of a row of the table, which are the same at each request."""
    return frozenset(expanded(text))
