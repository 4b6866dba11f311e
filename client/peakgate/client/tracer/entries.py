"""What a step is recorded as: allocations, their ends, and phases, in order."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Allocation:
    """A storage: its number, bytes, and what it turned out to be; `stream` names the pool that it is taken from (empty: the default)."""

    number: int
    nbytes: int
    category: str
    stream: str = ""


@dataclass(frozen=True, slots=True)
class Freed:
    """The end of an allocation."""

    number: int


@dataclass(frozen=True, slots=True)
class Phase:
    """A new phase begins."""

    name: str


Entry = Allocation | Freed | Phase
