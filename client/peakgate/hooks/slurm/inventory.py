"""The cards of a live cluster: its nodes, what is known of each type's memory and from whom, and what does not fit together. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from peakgate.hooks.slurm.card_names import cards_meant, named_bytes
from peakgate.hooks.slurm.card_rows import node_names
from peakgate.hooks.slurm.card_table import CATALOGUE, LEARNED, TABLE, UNKNOWN, CardTable, Row
from peakgate.hooks.slurm.learned import Seen, by_host, gib, is_near, learned_of
from peakgate.hooks.slurm.nodes import Node, folded


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Cards of one type in like nodes. `remark`: what a person should look at; `is_bad`: nothing is judged there, or wrongly."""

    row: Row
    remark: str = ""
    is_bad: bool = False


@dataclass(frozen=True, slots=True)
class _Known:
    gpu: str = ""
    memory_bytes: int = 0
    source: str = ""
    remark: str = ""
    is_bad: bool = False


def inventory(
    nodes: Iterable[Node], *, seen: Iterable[Seen] = (), own: CardTable | None = None, catalogue: Mapping[str, int] | None = None
) -> list[Found]:
    """Like nodes together, by type. `own`: the table as it stands, whose rows of a person win; `catalogue`: bytes by a card's name."""
    nodes, hosts, sizes = list(nodes), by_host(seen), catalogue or {}
    rows = own.cards if own else ()
    stated, earlier = [row for row in rows if row.is_stated], [row for row in rows if row.source == LEARNED]
    learned = {node.name: learned_of(node, hosts) for node in nodes}
    elsewhere = _elsewhere(nodes, learned)
    groups: dict[tuple[Row, _Known], list[str]] = {}
    for node in nodes:
        for item in node.gpus:
            said = learned[node.name].get(item.type)
            known = _known(item.type, node, _about(stated, item.type, node), said, sizes)
            if known.is_bad or known.source == CATALOGUE:
                known = _known_before(_about(earlier, item.type, node), said) or known
            if known.source == UNKNOWN and said is None and item.type in elsewhere:
                known = _as_elsewhere(item.type, node, elsewhere[item.type])
            row = Row(type=item.type, partitions=tuple(sorted(node.partitions)), features=node.features, count=item.count)
            groups.setdefault((row, known), []).append(node.name)
    found = [_found(row, known, names) for (row, known), names in groups.items()]
    return sorted(found, key=lambda each: (each.row.type, each.row.nodes))


def _found(row: Row, known: _Known, names: Sequence[str]) -> Found:
    row = replace(row, nodes=folded(names), gpu=known.gpu, memory_bytes=known.memory_bytes, source=known.source)
    return Found(row=row, remark=known.remark, is_bad=known.is_bad)


def _about(rows: Sequence[Row], kind: str, node: Node) -> Row | None:
    """The first row about this type in this node."""
    for row in rows:
        if row.type.lower() != kind.lower() or (row.nodes and node.name not in node_names(row.nodes)):
            continue
        if (not row.partitions or set(row.partitions) & set(node.partitions)) and set(row.features) <= set(node.features):
            return row
    return None


def _elsewhere(nodes: Sequence[Node], learned: Mapping[str, Mapping[str, Seen | str]]) -> dict[str, Seen]:
    """What agents saw of a type on all nodes that they told of, where it is one and the same."""
    told: dict[str, list[Seen]] = {}
    for node in nodes:
        for kind, said in learned[node.name].items():
            if isinstance(said, Seen) and kind:
                told.setdefault(kind, []).append(said)
    return {kind: each[0] for kind, each in told.items() if len({one.total_bytes for one in each}) == 1}


def _known(kind: str, node: Node, stated: Row | None, said: Seen | str | None, sizes: Mapping[str, int]) -> _Known:
    names = cards_meant(kind, node.features)
    if stated is not None:
        known = _Known(stated.gpu, stated.memory_bytes, TABLE)
        return _against(known, said, "the table says", sizes, is_bad=True)
    if isinstance(said, Seen):
        by_name = _Known(names[0], 0, CATALOGUE) if len(names) == 1 else _Known()
        remark = _against(by_name, said, f"{kind} is read as {by_name.gpu},", sizes, is_bad=False).remark
        return _Known(_gpu_of(said, names), said.total_bytes, LEARNED, remark)
    doubt = said or ""
    if len(names) == 1:
        return _Known(names[0], 0, CATALOGUE, doubt, bool(doubt))
    what = f"may be {' or '.join(names)}" if names else "is no card that is known by its name"
    return _Known("", 0, UNKNOWN, doubt or f"{kind or 'a card without a type'} {what}: state gpu or memory_bytes", is_bad=True)


def _known_before(row: Row | None, said: Seen | str | None) -> _Known | None:
    """What agents told when the table was written, of a node that they tell nothing of now."""
    return _Known(row.gpu, row.memory_bytes, LEARNED) if row is not None and said is None else None


def _as_elsewhere(kind: str, node: Node, seen: Seen) -> _Known:
    gpu = _gpu_of(seen, cards_meant(kind, node.features))
    return _Known(gpu, seen.total_bytes, LEARNED, f"as agents report of this type in {seen.node}")


def _gpu_of(seen: Seen, names: Sequence[str]) -> str:
    """The catalogue's name of what NVML names; of several the one of its size."""
    found = cards_meant(seen.gpu_name) or tuple(names)
    held = [name for name in found if is_near(named_bytes(name), seen.total_bytes)]
    return held[0] if len(held) == 1 else ""


def _against(known: _Known, said: Seen | str | None, who: str, sizes: Mapping[str, int], *, is_bad: bool) -> _Known:
    """With a remark where agents say something else."""
    if isinstance(said, str):
        return replace(known, remark=said, is_bad=is_bad)
    size = known.memory_bytes or sizes.get(known.gpu, 0) or named_bytes(known.gpu)
    if said is None or not size or is_near(size, said.total_bytes):
        return known
    name = f" ({said.gpu_name})" if said.gpu_name else ""
    return replace(known, remark=f"agents report {gib(said.total_bytes)}{name} in {said.node}, {who} {gib(size)}", is_bad=is_bad)
