"""How many elements a rank holds, by where they sit."""

from __future__ import annotations

from dataclasses import dataclass

Sizes = tuple[int, ...]
"""Elements of each weight, in the order of the code."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Census:
    """Elements that one rank holds, whole (before sharding over data parallel ranks)."""

    layers: dict[str, Sizes]
    """Of one layer of each kind."""
    embedding: Sizes
    head: Sizes
    """Of the last norm and the head; a tied head is the embedding's."""
    total: int
    trainable: int
