"""Which layers are walked, and how many equal ones each stands for."""

from __future__ import annotations

from dataclasses import dataclass
from math import lcm

from peakgate.memory.plan import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """`times` repetitions of layers of the given `kinds`; `every`: layers that share a checkpoint, 0 without."""

    number: int
    times: int
    kinds: tuple[str, ...]
    every: int


def stretches(plan: Plan, layers: int, *, each: bool = False) -> list[Stretch]:
    """The layers of a stage. A pattern's first run stands by itself (it makes the gradients' and masks' first use), its equal
    followers once for all, and the rest of a broken pattern last. `each`: every layer is walked (to record every event)."""
    first = min(plan.checkpoint_layers or layers, layers) if plan.checkpointing == "full" else 0
    out: list[Stretch] = []
    for start, count, every in ((0, first, plan.checkpoint_every), (first, layers - first, 0)):
        out += _section(plan.architecture.pattern, start, count, every, len(out), each=each)
    return out


def _section(pattern: tuple[str, ...], start: int, count: int, every: int, known: int, *, each: bool) -> list[Stretch]:
    period = lcm(len(pattern), every or 1)
    kinds = [pattern[(start + i) % len(pattern)] for i in range(count)]
    whole, rest = divmod(count, period)
    sizes = [(1, period)] * whole if each else [(1, period)] * min(whole, 1) + [(whole - 1, period)] * (whole > 1)
    sizes += [(1, rest)] * (rest > 0)
    out: list[Stretch] = []
    at = 0
    for times, length in sizes:
        out.append(Stretch(number=known + len(out) + 1, times=times, kinds=tuple(kinds[at : at + length]), every=every))
        at += times * length
    return out
