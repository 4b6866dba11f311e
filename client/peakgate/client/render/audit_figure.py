"""A figure of an audit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

Row = Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """`title` states what is found; `drawing` and `key` are SVG and HTML, the table's cells plain text."""

    title: str
    drawing: str
    key: str
    note: str
    heads: Row
    rows: Sequence[Row]
    table: str
    """What the table holds."""


def plain_number(tick: float) -> str:
    """A tick of an axis whose label has the unit."""
    return f"{tick:g}"
