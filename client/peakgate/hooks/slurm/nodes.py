"""The nodes of a cluster, as `scontrol show node -o` and `scontrol show partition -o` print them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from peakgate.hooks.slurm.records import fields_of
from peakgate.hooks.slurm.tres import GPU, SHARED, Item, items

_RANGE = re.compile(r"^([^\[\]]*)\[([\d,\-]+)\](.*)$")
MOST_NODES = 100_000
"""Names that one list is taken apart into; the largest cluster that Slurm takes has 65,533 nodes (slurm/slurm.h, MAX_NODES)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """`gpus`: cards by type; `shares`: what of them is handed out in parts."""

    name: str
    host: str = ""
    """As the machine calls itself."""

    partitions: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    gpus: tuple[Item, ...] = ()
    shares: tuple[Item, ...] = ()
    version: str = ""
    state: str = ""
    comes_and_goes: bool = False
    """A node of a cloud, which may not be there yet."""


def nodes_of(text: str) -> Iterator[Node]:
    """The nodes of `scontrol show node -o`."""
    for line in text.splitlines():
        found = fields_of(line)
        if "NodeName" not in found:
            continue
        resources, _ = items(found.get("Gres", ""), is_gres=True)
        state = found.get("State", "")
        yield Node(
            name=found["NodeName"],
            host=found.get("NodeHostName", ""),
            partitions=_names(found.get("Partitions", "")),
            features=_names(found.get("AvailableFeatures", "")),
            gpus=tuple(item for item in resources if item.name == GPU),
            shares=tuple(item for item in resources if item.name in SHARED),
            version=found.get("Version", ""),
            state=state,
            comes_and_goes=bool({"CLOUD", "POWERED_DOWN", "FUTURE"} & set(re.split(r"[+*~#!%$@^-]", state))),
        )


def default_partition(text: str) -> str:
    """Of `scontrol show partition -o`; empty: there is none."""
    for line in text.splitlines():
        found = fields_of(line)
        if found.get("Default") == "YES":
            return found.get("PartitionName", "")
    return ""


def _names(text: str) -> tuple[str, ...]:
    return tuple(name for name in text.split(",") if name and name != "(null)")


def expanded(text: str, *, most: int = MOST_NODES) -> tuple[str, ...]:
    """The names of a list such as `n[1-3,07],login1`; of one with more than `most` the first ones, one more than that."""
    found: list[str] = []
    for part in _parts(text):
        for name in _one(part):
            found.append(name)
            if len(found) > most:
                return tuple(found)
    return tuple(found)


def _parts(text: str) -> Iterator[str]:
    """Between the commas that stand in no bracket."""
    for part in re.split(r",(?![^\[]*\])", text):
        if part.strip():
            yield part.strip()


def _one(part: str) -> Iterator[str]:
    match = _RANGE.match(part)
    if match is None:
        yield part
        return
    for span in filter(None, match[2].split(",")):
        first, _, last = span.partition("-")
        if first.isdigit() and (last or first).isdigit() and len(first) < 10 and len(last) < 10:
            for number in range(int(first), int(last or first) + 1):
                for rest in _one(match[3]):
                    yield f"{match[1]}{number:0{len(first)}}{rest}"


def folded(names: Iterable[str]) -> str:
    """The shortest of our lists that means the names: numbers at their ends become ranges."""
    groups: dict[tuple[str, int], list[int]] = {}
    whole: list[str] = []
    for name in sorted(set(names)):
        match = re.fullmatch(r"(.*?)(\d{1,9})", name)
        if match is None:
            whole.append(name)
        else:
            groups.setdefault((match[1], len(match[2]) if match[2].startswith("0") else 0), []).append(int(match[2]))
    return ",".join([*whole, *(_folded(prefix, width, sorted(numbers)) for (prefix, width), numbers in sorted(groups.items()))])


def _folded(prefix: str, width: int, numbers: list[int]) -> str:
    if len(numbers) == 1:
        return f"{prefix}{numbers[0]:0{width}}"
    spans: list[tuple[int, int]] = []
    for number in numbers:
        spans[-1:] = [(spans[-1][0], number)] if spans and number == spans[-1][1] + 1 else [*spans[-1:], (number, number)]
    told = (f"{first:0{width}}" if first == last else f"{first:0{width}}-{last:0{width}}" for first, last in spans)
    return f"{prefix}[{','.join(told)}]"
