"""What an agent saw, as tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console

from peakgate.client.render.tables import plain_table
from peakgate.client.render.text import escape


def print_table(console: Console, head: Sequence[str], rows: Iterable[Sequence[str]], *, empty: str) -> None:
    """The rows below their head, or the one line that says that there are none."""
    table = plain_table(*head)
    for row in rows:
        table.add_row(*map(escape, row))
    if table.row_count:
        console.print(table)
    else:
        console.print(escape(empty))
