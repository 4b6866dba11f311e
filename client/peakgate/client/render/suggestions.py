"""Suggestions as text for a person, a block of lines each, which reads well on a terminal of 80 columns."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.table import Table

from peakgate.client.render.text import escape
from peakgate.client.render.units import gb, step_time
from peakgate.v1.plain import plain_value
from peakgate.v1.prediction_pb2 import Suggestion

_INDENT = 4


def print_suggestions(console: Console, suggestions: Iterable[Suggestion], most: int | None = None, *, reasons: bool = False) -> None:
    """Changes, best first, with their `reasons` if wanted; when there are more than `most`, the verb that shows all is named."""
    rows = list(suggestions)
    if not rows:
        return
    console.print("\n  What would change it: upper bound, room on the card, step time")
    for number, each in enumerate(rows[:most], start=1):
        print_suggestion(console, each, f"{number}.", reasons=reasons)
    if most is not None and len(rows) > most:
        console.print(f"    and {len(rows) - most} more: `peakgate suggest` lists all of them")


def print_suggestion(console: Console, suggestion: Suggestion, mark: str, *, reasons: bool = False) -> None:
    """Title, figures, the fields to write, and what it takes."""
    indent = _INDENT + len(mark) + 1
    print_hanging(console, escape(suggestion.title), escape(mark))
    console.print(f"{' ' * indent}{_figures(suggestion)}", soft_wrap=True)
    for line in suggestion.diff.splitlines() if reasons and suggestion.diff else assignments(suggestion):
        console.print(f"{' ' * indent}[dim]{escape(line)}[/]", soft_wrap=True)
    if reasons and suggestion.why:
        print_hanging(console, escape(suggestion.why), "-", indent)
    for condition in suggestion.conditions:
        print_hanging(console, escape(condition), "if", indent)
    if suggestion.alters:
        console.print(f"{' ' * indent}alters {escape(' and '.join(suggestion.alters.split()))}", soft_wrap=True)


def print_hanging(console: Console, markup: str, mark: str, indent: int = _INDENT) -> None:
    """Text behind a mark; on a terminal it is wrapped between words, in a pipe it stays one line, for whoever searches in it."""
    if not console.is_terminal:
        console.print(f"{' ' * indent}{mark} {markup}", soft_wrap=True)
        return
    table = Table.grid(padding=0)
    table.add_row(" " * indent, f"{mark} ", markup)
    console.print(table)


def _figures(suggestion: Suggestion) -> str:
    time = step_time(suggestion.relative_step_time) if suggestion.relative_step_time else "step time not estimated"
    return ", ".join((gb(suggestion.bound_bytes), _room(suggestion), time))


def _room(suggestion: Suggestion) -> str:
    size = gb(abs(suggestion.headroom_bytes))
    if suggestion.fits:
        return f"[green]fits[/] with {size} to spare" if suggestion.headroom_bytes > 0 else "[green]fits[/]"
    return f"[red]does not fit[/] by {size}" if suggestion.headroom_bytes < 0 else "[red]does not fit[/]"


def changes_text(suggestion: Suggestion) -> str:
    """The fields to write, on one line: `attention.implementation: flash`."""
    return ", ".join(assignments(suggestion))


def assignments(suggestion: Suggestion) -> list[str]:
    """The fields to write, each with its value."""
    return [f"{path}: {_word(plain_value(suggestion.changes[path]))}" for path in sorted(suggestion.changes)]


def _word(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(str(each) for each in value)}]"
    return str(value).lower() if isinstance(value, bool) else str(value)
