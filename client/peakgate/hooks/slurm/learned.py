"""What agents saw in the nodes, as the memory of the scheduler's types: the key is a node and a type, since one node may hold two. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from peakgate.hooks.slurm.card_names import cards_meant, named_bytes
from peakgate.hooks.slurm.nodes import Node

if TYPE_CHECKING:
    from peakgate.v1.telemetry_service_pb2 import NodeCard

UNNAMED_CLUSTERS = frozenset({"", "default"})
"""What an agent calls its cluster when nobody told it."""

TOLERANCE = 0.08
"""A card named after 80 GB has 79.6 to 80 GiB, one after 24 GB 22.5 to 24 GiB (server's catalogue of GPUs): so far is a size its own."""


@dataclass(frozen=True, slots=True)
class Seen:
    """Cards of one kind in one node, as NVML calls them and as much memory as it gives them."""

    node: str
    gpu_name: str
    total_bytes: int


def seen_in(cluster: str, cards: Iterable[NodeCard]) -> list[Seen]:
    """What agents saw in the nodes of a cluster, and those that nobody told which one they are in."""
    mine = (card for card in cards if card.cluster in UNNAMED_CLUSTERS or card.cluster.lower() == cluster.lower())
    return [Seen(card.node, card.gpu_name, card.total_bytes) for card in mine]


def by_host(seen: Iterable[Seen]) -> dict[str, list[Seen]]:
    """By the short name of the machine."""
    found: dict[str, list[Seen]] = {}
    for card in seen:
        found.setdefault(short(card.node), []).append(card)
    return found


def short(host: str) -> str:
    """A machine's name without its domain."""
    return host.lower().partition(".")[0]


def learned_of(node: Node, seen: Mapping[str, Sequence[Seen]]) -> dict[str, Seen | str]:
    """By type: what the node's agent saw of it; words where what it saw does not say which it is."""
    cards = [*seen.get(short(node.name), ()), *(seen.get(short(node.host), ()) if short(node.host) != short(node.name) else ())]
    types = [item.type for item in node.gpus]
    if not cards or not types:
        return {}
    if len(types) == 1:
        return {types[0]: _only(cards)}
    found: dict[str, Seen | str] = {}
    for kind in types:
        mine = [card for card in cards if _is(kind, card, types)]
        if mine:
            found[kind] = _only(mine)
    return found


def _only(cards: Sequence[Seen]) -> Seen | str:
    sizes = {card.total_bytes for card in cards}
    if len(sizes) == 1:
        return cards[0]
    told = ", ".join(sorted(f"{card.gpu_name or 'a card'} of {gib(card.total_bytes)}" for card in cards))
    return f"agents report several cards of this type: {told}"


def _is(kind: str, card: Seen, types: Sequence[str]) -> bool:
    """Whether the card is of this type and could be of no other one of the node."""
    return _may_be(kind, card) and not any(_may_be(other, card) for other in types if other != kind)


def _may_be(kind: str, card: Seen) -> bool:
    names = cards_meant(kind)
    return any(is_near(card.total_bytes, named_bytes(name)) and name in (cards_meant(card.gpu_name) or (name,)) for name in names)


def is_near(one_bytes: int, other_bytes: int) -> bool:
    """Whether two figures of a card's memory are of the same card: a name counts in GB or GiB, and less what the card keeps."""
    return abs(one_bytes - other_bytes) <= TOLERANCE * max(one_bytes, other_bytes)


def gib(size_bytes: int) -> str:
    """For a person."""
    return f"{size_bytes / (1 << 30):.1f} GiB"
