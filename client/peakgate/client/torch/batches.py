"""How many sequences a batch holds, and of how many tokens: by the shapes of its tensors, nothing of its content."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

TOKENS = ("input_ids", "inputs_embeds", "tokens")
"""Names of tensors whose first two dimensions are sequences and tokens."""


class Shape(NamedTuple):
    """`sequence_length` is 0 where a batch has no tokens (images) or is not understood; then `micro_batch` may be 0 too."""

    micro_batch: int
    sequence_length: int


NOTHING = Shape(0, 0)


def shape_of(batch: object) -> Shape:
    """Of a mapping with tensors of tokens, of a tensor of whole numbers with two dimensions, or of a sequence that begins with one."""
    if isinstance(batch, Mapping):
        return next((Shape(*edges[:2]) for name in TOKENS if len(edges := _edges(batch.get(name))) >= 2), NOTHING)
    if isinstance(batch, list | tuple):
        return shape_of(batch[0]) if batch else NOTHING
    edges = _edges(batch)
    if len(edges) == 2 and "int" in str(getattr(batch, "dtype", "")):
        return Shape(*edges)
    return Shape(edges[0], 0) if len(edges) > 1 else NOTHING


def _edges(tensor: object) -> tuple[int, ...]:
    return tuple(int(edge) for edge in getattr(tensor, "shape", ()))
