"""What the verbs of `peakgate agent` print: tables for a person, or JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from peakgate.client.options import Output
from peakgate.client.output import human_console, write_json
from peakgate.client.render.agent import print_table
from peakgate.v1.plain import Plain


def show_tables(found: Plain, tables: Iterable[tuple[Sequence[str], Sequence[Sequence[str]]]], *, as_json: bool) -> None:
    """The same as JSON or as tables with their heads."""
    if as_json:
        print_json(found)
        return
    for head, rows in tables:
        print_rows(head, rows, empty="none")


def print_rows(head: Sequence[str], rows: Iterable[Sequence[str]], *, empty: str) -> None:
    """One table, or the line `empty`."""
    print_table(human_console(Output.table), head, rows, empty=empty)


def print_json(value: Plain) -> None:
    """A JSON document on standard output."""
    write_json(value, Output.json)
