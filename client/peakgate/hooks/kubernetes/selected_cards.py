"""The cards that a selection of nodes names itself, where no node tells. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from peakgate.hooks.kubernetes.candidates import Candidate
from peakgate.hooks.kubernetes.node_labels import MEMORY, NAMING, card_of
from peakgate.hooks.kubernetes.quantities import label_bytes
from peakgate.hooks.kubernetes.selection import GREATER, IN, Requirement, Selection


def cards_named(selection: Selection, profile: str = "") -> list[Candidate]:
    """A card, or the slice `profile` of it, for each way to meet the selection; none unless each way says one."""
    found: list[Candidate] = []
    for branch in selection.branches():
        cards = _named(branch, profile)
        if not cards:
            return []
        found += cards
    return found


def _named(branch: Sequence[Requirement], profile: str) -> list[Candidate]:
    cards = [card_of(labels, profile) for labels in _label_sets(branch)]
    known = [each for each in cards if each is not None]
    if known and len(known) == len(cards):
        return known
    least = _least(branch)
    return [least] if least is not None and not profile else []


def _label_sets(branch: Sequence[Requirement]) -> Iterator[Mapping[str, str]]:
    """The labels of a node that meets all of a branch: once for each value of the label that names the card most clearly."""
    values = {each.key: each.values for each in branch if each.operator == IN and each.values}
    fixed = {key: listed[0] for key, listed in values.items() if len(listed) == 1}
    naming = next((label for label in NAMING if label in values), MEMORY if MEMORY in values else "")
    for value in values.get(naming, ("",)):
        yield {**fixed, naming: value} if naming else fixed


def _least(branch: Iterable[Requirement]) -> Candidate | None:
    """A selection on the label of the memory says how little a node may have."""
    for each in branch:
        value = each.values[0] if each.values else ""
        size = label_bytes(value) if each.key == MEMORY and each.operator == GREATER else None
        if size is not None:
            return Candidate(memory_bytes=size, is_least=True, labels=(), memory_source=f"{each.source} > {value}")
    return None
