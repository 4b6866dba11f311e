"""How many elements a rank holds, by where they sit."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Census:
    """Elements that one rank holds, whole (before sharding over data parallel ranks)."""

    layers: dict[str, int]
    """Of one layer of each kind."""
    ends: int
    """Of the embedding, the last norm and the head."""
    total: int
    trainable: int
