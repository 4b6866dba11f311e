"""Tables without lines, as all of ours are."""

from __future__ import annotations

from rich.table import Table


def plain_table(*headings: str) -> Table:
    """A table with bold headings; further columns may be added to it."""
    return Table(*headings, box=None, header_style="bold", padding=(0, 2, 0, 0))
