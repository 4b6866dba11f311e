"""What a launch was read as, as text for a person."""

from __future__ import annotations

from rich.console import Console

from peakgate.client.origin import Origin
from peakgate.client.render.suggestions import print_hanging
from peakgate.client.render.text import escape


def print_origin(console: Console, origin: Origin | None) -> None:
    """Behind an answer: the format, and what contradicts or could not be read; nothing for a job document."""
    if origin is None:
        return
    count = len(origin.places)
    console.print(f"\n  Read as {escape(origin.format)}: {count} field{'s' if count != 1 else ''}; `peakgate read` shows where each stands")
    for warning in origin.warnings:
        print_hanging(console, escape(warning), "-")


def print_unread(console: Console, origin: Origin | None) -> None:
    """Below an error: what it could not be read of, beside the warnings."""
    print_warnings(console, origin)
    for each in origin.unread if origin is not None else ():
        print_hanging(console, escape(each), "-", 10)


def print_warnings(console: Console, origin: Origin | None) -> None:
    """The same below a line of many."""
    for warning in origin.warnings if origin is not None else ():
        print_hanging(console, escape(warning), "-", 10)
