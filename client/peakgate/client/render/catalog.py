"""Rows of a catalogue as a table: one column a field, sizes with their unit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Console

from peakgate.client.render.tables import plain_table
from peakgate.client.render.text import escape
from peakgate.client.render.units import count, gb_and_gib
from peakgate.v1.document import Plain


def print_rows(console: Console, rows: Sequence[Mapping[str, Plain]]) -> None:
    """One line a row, the columns in the order of the message's fields; blocks of fields are for programs."""
    rows = [{name: value for name, value in row.items() if not isinstance(value, dict)} for row in rows]
    if not rows:
        console.print("The table is empty.")
        return
    table = plain_table()
    for name in rows[0]:
        table.add_column(_heading(name), overflow="fold")
    for row in rows:
        table.add_row(*(escape(_cell(name, value)) for name, value in row.items()))
    console.print(table)


def _heading(name: str) -> str:
    return name.removesuffix("_bytes").replace("_", " ")


def _cell(name: str, value: Plain) -> str:
    if isinstance(value, list):
        return ", ".join(str(each) for each in value)
    if isinstance(value, int) and name.endswith("_bytes"):
        return gb_and_gib(value)
    if isinstance(value, int) and name == "parameters":
        return count(value)
    return str(value)
