"""What a search is asked for, and what it answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from peakgate.memory.prediction import Change

LimitOf = Callable[[str], int]
"""Of a calibration group: the largest requirement in bytes that the card holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """`allow`: what plans may alter (numerics, objective, batch); `keeps`: whether the field at a path must stay as it is; `most`: how many
    plans; `thorough`: a wide search, on more GPUs too; `front`: the front of memory against time as well."""

    allow: frozenset[str] = frozenset()
    keeps: Callable[[str], bool] = lambda _: False
    most: int = 5
    thorough: bool = False
    front: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Plans:
    """`suggestions` fit, best first; `closest` comes nearest where none does; how many plans were `considered`."""

    suggestions: tuple[Change, ...] = ()
    closest: Change | None = None
    front: tuple[Change, ...] = ()
    considered: int = 0
