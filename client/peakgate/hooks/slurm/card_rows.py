"""The rows of the table of cards that a submission may be given cards of. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from peakgate.hooks.slurm.card_table import CardTable, Row
from peakgate.hooks.slurm.features import satisfies
from peakgate.hooks.slurm.nodes import expanded
from peakgate.hooks.slurm.submission import Submission


def rows_for(table: CardTable, submission: Submission, kind: str) -> list[Row]:
    """Of one type, or of all where none was asked for: in the partitions, with the features and on the nodes that were asked for."""
    asked = frozenset(submission.partitions or filter(None, (table.default_partition,)))
    each = submission.gpus_per_node
    most = {row.nodes: sum(other.count for other in table.cards if other.nodes == row.nodes) for row in table.cards if row.nodes}
    found: list[Row] = []
    for row in table.cards:
        if kind and row.type.lower() != kind.lower():
            continue
        has_room = each is None or each.count <= (most.get(row.nodes) or each.count)
        if has_room and _is_asked_for(row, submission, asked) and not any(_covers(before, row, asked) for before in found):
            found.append(row)
    return found


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
