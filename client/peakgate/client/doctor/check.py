"""One line of a check-up."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class State(StrEnum):
    """How a check ended; only `bad` makes the command fail."""

    ok = "ok"
    note = "note"
    bad = "bad"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """What was looked at, what was found, and what to do about it (empty when nothing is)."""

    name: str
    state: State
    found: str
    remedy: str = ""
