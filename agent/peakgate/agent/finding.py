"""One line of the agent's check-up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["ok", "note", "bad"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What was looked at, what was found, and what to do about it (empty when nothing is). `bad` peaks cannot be trusted."""

    name: str
    state: State
    found: str
    remedy: str = ""


def judged(*, name: str, is_good: bool, found: str, remedy: str, otherwise: State = "bad") -> Finding:
    """ok without a word, or the other state with its remedy."""
    return Finding(name=name, state="ok" if is_good else otherwise, found=found, remedy="" if is_good else remedy)
