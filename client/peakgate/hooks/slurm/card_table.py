"""The administrator's table: which cards a cluster has, where, and how much memory each has. `peakgate slurm inventory` writes it.

    untyped: best
    cards:
      - {type: h100, nodes: "h100n[1-2]", partitions: [any, h100], features: [hopper], count: 8, gpu: h100-80gb}
      - {type: a100, memory_bytes: 85899345920}

A row holds for the requests that it says nothing against: without partitions for all of them. Of several the first holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path


class TableError(Exception):
    """A table that is none, in words for an administrator."""


class Untyped(StrEnum):
    """Which card a request is judged on that may get several kinds: the one with the least memory, the one with the most, or the least one
    on which it fits, to which it is then pinned. Only under `worst` is a job refused that fits a card which it may get."""

    worst = "worst"
    best = "best"
    pin = "pin"


ADMIN, TABLE, LEARNED, CATALOGUE, UNKNOWN = "admin", "table", "agents", "catalogue", "unknown"
"""Who said how much memory a card has: a person in this row or in another one, the agents on the nodes, the card's name, nobody."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Cards of one type in like nodes. `gpu`: a name of the catalogue; `memory_bytes`: the card's total, which wins."""

    type: str = ""
    nodes: str = ""
    partitions: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    count: int = 0
    gpu: str = ""
    memory_bytes: int = 0
    source: str = ADMIN

    @property
    def is_stated(self) -> bool:
        """Whether a person said how much memory these cards have."""
        return self.source == ADMIN and bool(self.gpu or self.memory_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class CardTable:
    """The whole file."""

    cluster: str = ""
    default_partition: str = ""
    untyped: Untyped = Untyped.best
    cards: tuple[Row, ...] = field(default=())


LARGEST_CHARACTERS = 16 << 20
_TEXTS = ("type", "nodes", "gpu", "source")
_LISTS = ("partitions", "features")
_NUMBERS = ("count", "memory_bytes")


def read_table(path: Path) -> CardTable:
    """The table of a file. Raises TableError."""
    from peakgate.client.yaml_reader import YamlError, load_all

    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(LARGEST_CHARACTERS + 1)
        if len(text) > LARGEST_CHARACTERS:
            raise TableError(f"{path} is longer than {LARGEST_CHARACTERS} characters")
        documents = load_all(text)
    except (OSError, UnicodeDecodeError) as error:
        raise TableError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from error
    except YamlError as error:
        raise TableError(f"{path} {error}") from error
    try:
        return table_of(documents[0] if documents else {})
    except TableError as error:
        raise TableError(f"{path}: {error}") from error


def table_of(told: object) -> CardTable:
    """A document as a table. Raises TableError that names the row and the field."""
    known = {"cluster", "default_partition", "untyped", "cards"}
    if not isinstance(told, Mapping) or not set(map(str, told)) <= known:
        raise TableError(f"holds {', '.join(sorted(known))} and nothing else")
    rows = told.get("cards") or []
    if not isinstance(rows, Sequence) or isinstance(rows, str):
        raise TableError("cards is a list of rows")
    untyped = told.get("untyped", Untyped.best)
    if untyped not in set(Untyped):
        raise TableError(f"untyped is {str(untyped)[:40]!r}; allowed are {', '.join(Untyped)}")
    return CardTable(
        cluster=str(told.get("cluster") or ""),
        default_partition=str(told.get("default_partition") or ""),
        untyped=Untyped(str(untyped)),
        cards=tuple(_row(f"cards[{place}]", row) for place, row in enumerate(rows)),
    )


def _row(where: str, told: object) -> Row:
    known = (*_TEXTS, *_LISTS, *_NUMBERS)
    if not isinstance(told, Mapping):
        raise TableError(f"{where} is no mapping")
    if strange := sorted(set(map(str, told)) - set(known)):
        raise TableError(f"{where}.{strange[0]} is no field; a row has {', '.join(known)}")
    texts = {name: str(told[name]) for name in _TEXTS if told.get(name) is not None}
    lists = {name: _list(f"{where}.{name}", told[name]) for name in _LISTS if told.get(name) is not None}
    numbers = {name: _count(f"{where}.{name}", told[name]) for name in _NUMBERS if told.get(name) is not None}
    return Row(**texts, **lists, **numbers)  # type: ignore[arg-type]  # the names are those of the row, each of its kind


def _list(where: str, value: object) -> tuple[str, ...]:
    words = value.split(",") if isinstance(value, str) else value
    if not isinstance(words, Sequence) or not all(isinstance(word, str | int | float) for word in words):
        raise TableError(f"{where} is a list of names")
    return tuple(str(word).strip() for word in words)


def _count(where: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise TableError(f"{where} is {str(value)[:40]!r}; it is a whole number")
    return value
