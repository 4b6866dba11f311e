"""A job document in YAML with the place of every field behind it, for a terminal of 80 columns and for a file."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping

import yaml
from rich.console import Console

from peakgate.client.origin import Origin
from peakgate.client.render.text import escape, visible
from peakgate.v1.plain import Plain

COLUMNS = 80
LATEST_COLUMN = 44
"""Where comments begin at most; a longer line has its comment two spaces behind it, a longer comment begins before."""


def print_document(console: Console, label: str, document: Mapping[str, Plain], origin: Origin) -> None:
    """What it was read as, what contradicts, then the document itself."""
    console.print("---")
    for line in _head(label, origin):
        console.print(f"[dim]{escape(line)}[/]", soft_wrap=True)
    rows = list(_rows(document, origin, "", 0))
    column = min(LATEST_COLUMN, max((len(text) + 2 for text, comment in rows if comment), default=0))
    for text, comment in rows:
        _print_row(console, text, comment, column)


def leaves(document: Mapping[str, Plain], path: str = "") -> Iterator[str]:
    """Paths of what is no block."""
    for key, value in document.items():
        at = f"{path}{key}"
        if isinstance(value, dict) and value:
            yield from leaves(value, f"{at}.")
        else:
            yield at


def _head(label: str, origin: Origin) -> Iterator[str]:
    yield from _comment(f"{visible(label)}, read as {origin.format}")
    for warning in origin.warnings:
        yield from _comment(f"warning: {visible(warning)}")


def _comment(text: str) -> list[str]:
    return textwrap.wrap(text, COLUMNS, initial_indent="# ", subsequent_indent="#   ")


def _print_row(console: Console, text: str, comment: str, column: int) -> None:
    if not comment:
        console.print(escape(text), soft_wrap=True)
        return
    start = max(len(text) + 2, min(column, COLUMNS - len(comment) - 2))
    if start + len(comment) + 2 > COLUMNS:  # above it, at its depth
        indent = " " * (len(text) - len(text.lstrip()))
        console.print(f"{indent}[dim]# {escape(comment)}[/]", soft_wrap=True)
        console.print(escape(text), soft_wrap=True)
        return
    console.print(f"{escape(text.ljust(start))}[dim]# {escape(comment)}[/]", soft_wrap=True)


def _rows(document: Mapping[str, Plain], origin: Origin, path: str, depth: int) -> Iterator[tuple[str, str]]:
    """(line, comment); the place of a whole block stands behind its key."""
    for key, value in document.items():
        at, indent = f"{path}{key}", "  " * depth
        place = visible(origin.places.get(at, ""))
        head = f"{indent}{_scalar(key)}:"
        if isinstance(value, dict) and value:
            yield head, place
            yield from _rows(value, origin, f"{at}.", depth + 1)
        elif isinstance(value, list) and any(isinstance(each, dict) or len(str(each)) > COLUMNS // 2 for each in value):
            yield head, place
            yield from ((f"{indent}  - {_scalar(each)}", "") for each in value)
        else:
            yield f"{head} {_scalar(value)}", place


def _scalar(value: Plain) -> str:
    text = yaml.safe_dump(value, default_flow_style=True, width=float("inf"), allow_unicode=True, sort_keys=False)
    return text.removesuffix("\n").removesuffix("\n...").strip()
