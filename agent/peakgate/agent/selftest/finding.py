"""What one check found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

LISTED = 3
"""So many GPUs or pids are named; the rest is counted."""


class Outcome(StrEnum):
    """How a check ended."""

    passed = "passed"
    noted = "noted"
    """The agent works, and knows less or does it another way."""
    failed = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What was looked at, what was seen, and what to do about it (empty when nothing is)."""

    name: str
    outcome: Outcome
    seen: str
    remedy: str = ""


def passed(name: str, seen: str) -> Finding:
    """The check found what it looked for."""
    return Finding(name=name, outcome=Outcome.passed, seen=seen)


def noted(name: str, seen: str, remedy: str = "") -> Finding:
    """The check found something worth knowing."""
    return Finding(name=name, outcome=Outcome.noted, seen=seen, remedy=remedy)


def failed(name: str, seen: str, remedy: str) -> Finding:
    """The check found a fault."""
    return Finding(name=name, outcome=Outcome.failed, seen=seen, remedy=remedy)


def listed(items: Sequence[object]) -> str:
    """The first few, and how many more."""
    shown = ", ".join(map(str, items[:LISTED]))
    return f"{shown} and {len(items) - LISTED} more" if len(items) > LISTED else shown


def gibibytes(size_bytes: int) -> str:
    """A size for people."""
    return f"{size_bytes / (1 << 30):.2f} GiB"
