"""The rows of the table of cards that a submission may be given cards of. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from peakgate.hooks.slurm.card_table import CardTable, Row
from peakgate.hooks.slurm.features import satisfies
from peakgate.hooks.slurm.nodes import expanded
from peakgate.hooks.slurm.submission import Submission


def rows_for(table: CardTable, submission: Submission, kind: str) -> list[Row]:
    """Of one type, or of all where none was asked for: in the partitions, with the features and on the nodes that were asked for.

    A row that names neither says how much memory a type has, and not where it is: it speaks for those below it, and stands for itself
    only where there are none.
    """
    asked = frozenset(submission.partitions or filter(None, (table.default_partition,)))
    each = submission.gpus_per_node
    most = _cards_of_nodes(table)
    held: list[Row] = []
    for row in table.cards:
        if kind and row.type.lower() != kind.lower():
            continue
        has_room = each is None or each.count <= (most.get(row.nodes) or each.count)
        if has_room and _is_asked_for(row, submission, asked):
            held.append(row)
    placed = [(place, row) for place, row in enumerate(held) if row.nodes or row.partitions or row.features]
    return [_as_first_said(row, held[:place], asked) for place, row in placed] or held[: 1 if kind else None]


def _cards_of_nodes(table: CardTable) -> dict[str, int]:
    """How many each of the nodes has, of all types; 0: nobody said."""
    return {row.nodes: sum(other.count for other in table.cards if other.nodes == row.nodes) for row in table.cards if row.nodes}


def _as_first_said(row: Row, above: Sequence[Row], asked: frozenset[str]) -> Row:
    first = next((before for before in above if _covers(before, row, asked)), row)
    return replace(row, gpu=first.gpu, memory_bytes=first.memory_bytes, source=first.source)


def _is_asked_for(row: Row, submission: Submission, asked: frozenset[str]) -> bool:
    if row.partitions and asked and not asked & set(row.partitions):
        return False
    if submission.features and (row.features or row.nodes) and not satisfies(row.features, submission.features):
        return False
    if not row.nodes:
        return True
    wanted, excluded = expanded(submission.node_list), expanded(submission.excluded)
    return not (wanted or excluded) or _has_one(expanded(row.nodes), wanted, excluded)


def _has_one(nodes: Sequence[str], wanted: Sequence[str], excluded: Sequence[str]) -> bool:
    left = set(nodes) - set(excluded)
    return bool(left & set(wanted)) if wanted else bool(left)


def _covers(before: Row, row: Row, asked: frozenset[str]) -> bool:
    """Whether an earlier row holds wherever this one would."""
    if before.type.lower() != row.type.lower() or (before.partitions and not (asked and asked <= set(before.partitions))):
        return False
    if not before.nodes:
        return not before.features
    return bool(row.nodes) and set(expanded(row.nodes)) <= set(expanded(before.nodes))
