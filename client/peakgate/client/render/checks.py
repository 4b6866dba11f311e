"""A check-up as text."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console

from peakgate.client.doctor.check import Check, State
from peakgate.client.render.text import escape

_STYLES = {State.ok: "green", State.note: "yellow", State.bad: "bold red"}


def print_checks(console: Console, checks: Iterable[Check]) -> None:
    """One line a check, and a line with the remedy where there is one."""
    for check in checks:
        console.print(f"[{_STYLES[check.state]}]{check.state:<5}[/]{check.name:<12} {escape(check.found)}", soft_wrap=True)
        if check.remedy:
            console.print(f"{'':<18}→ {escape(check.remedy)}", soft_wrap=True)
