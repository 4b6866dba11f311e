"""Arithmetic that a number and an array of numbers both know, so that one formula costs one plan or fifty thousand.

Nothing here imports numpy: an array comes in with the caller's sizes and stays one. `Number` stands for both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

Number = float
"""A float, or an array of float64 with one entry a plan."""


def larger(x: Number, y: Number) -> Number:
    """The larger of two, entry by entry."""
    clip, bound = _clip(x, y)
    return clip(bound, None) if clip else max(x, y)


def smaller(x: Number, y: Number) -> Number:
    """The smaller of two, entry by entry."""
    clip, bound = _clip(x, y)
    return clip(None, bound) if clip else min(x, y)


def _clip(x: Number, y: Number) -> tuple[Callable[[Number | None, Number | None], Number] | None, Number]:
    """An array's own method, and the other number; numbers have none."""
    clip = getattr(x, "clip", None)
    return (clip, y) if clip else (getattr(y, "clip", None), x)


def positive(x: Number) -> Number:
    """x where it is above 0, else 0."""
    return larger(x, 0.0)


def sum_of(numbers: Sequence[Number]) -> Number:
    """The sum of at least one."""
    first, *rest = numbers
    return sum(rest, start=first)


def whole_parts(x: float, parts: Number) -> Number:
    """x / parts, rounded up; both are whole. (An array's floor division takes fifty times as long as its other arithmetic.)"""
    up = x / parts + (0.5 - 0.25 / x)
    own = getattr(up, "round", None)
    return own() if own else float(round(up))


def others(ranks: Number) -> Number:
    """(n - 1) / n: the part of a ring's data that a rank has from others (Patarasuk and Yuan 2009)."""
    return 1.0 - 1.0 / ranks


BESIDE = 20 / 132
"""Multiprocessors that communication takes from the products it runs beside, in all of them (DeepSeek-V3, arXiv 2412.19437, section 3.2.2:
20 of an H800's 132)."""


def hidden_behind(sent: Number, work: Number, pieces: float) -> Number:
    """What communication that runs beside `work` costs: all that is longer, and at least one of its pieces, which starts when no work is
    left, or before any (PyTorch DDP, arXiv 2006.15704, section 3.2.3; FSDP, arXiv 2304.11277, section 3.3); and BESIDE of what is
    hidden."""
    return larger(sent - work, sent * (1.0 / pieces)) * (1.0 - BESIDE) + sent * BESIDE
