"""How a check says what it found."""

from __future__ import annotations

from collections.abc import Sequence

from peakgate.agent.finding import Finding

LISTED = 3
"""So many GPUs or pids are named; the rest is counted."""


def passed(name: str, found: str) -> Finding:
    """The check found what it looked for."""
    return Finding(name=name, state="ok", found=found)


def noted(name: str, found: str, remedy: str = "") -> Finding:
    """The agent works, and knows less or does it another way."""
    return Finding(name=name, state="note", found=found, remedy=remedy)


def failed(name: str, found: str, remedy: str) -> Finding:
    """The check found a fault."""
    return Finding(name=name, state="bad", found=found, remedy=remedy)


def listed(items: Sequence[object]) -> str:
    """The first few, and how many more."""
    shown = ", ".join(map(str, items[:LISTED]))
    return f"{shown} and {len(items) - LISTED} more" if len(items) > LISTED else shown


def gibibytes(size_bytes: int) -> str:
    """A size for people."""
    return f"{size_bytes / (1 << 30):.2f} GiB"
