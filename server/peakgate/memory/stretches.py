"""Which layers are walked, and how many equal ones each stands for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import groupby
from math import lcm

from peakgate.memory.forms import plain
from peakgate.memory.plan import FSDP, Plan
from peakgate.memory.profiles import profile_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """`times` repetitions of layers of the given `kinds`; `every`: layers that share a checkpoint, 0 without; `frozen`: by their number."""

    number: int
    times: int
    kinds: tuple[str, ...]
    every: int
    frozen: bool = False


def stretches(plan: Plan, layers: int, *, each: bool = False, start: int = 0) -> list[Stretch]:
    """The layers of a stage. A pattern's first run stands by itself (it makes the gradients' and masks' first use), its equal
    followers once for all, and the rest of a broken pattern last. `each`: every layer is walked (to record every event); `start`: layers
    of the stages before."""
    first = min(plan.checkpoint_layers or layers, layers) if wraps_layers(plan) else 0
    out: list[Stretch] = []
    leading = min(max(0, plan.architecture.leading - start), layers)
    for begin, end, every in ((0, first, plan.checkpoint_every), (first, layers, 0)):
        for pattern, at, count in (
            (("dense",), begin, min(end, leading) - begin),
            (plan.architecture.pattern, max(begin, leading), end - max(begin, leading)),
        ):
            period = lcm(len(pattern), every or 1)
            for first_layer, length, frozen in _uniform(plan, start, at, count):
                whole, rest = divmod(length, period)
                sizes = [(1, period)] * plain(whole) if each else _together(plan, whole, period)
                section = _section(pattern, first_layer - leading, [*sizes, *[(1, rest)] * (rest > 0)], every, len(out))
                out += [replace(stretch, frozen=frozen) for stretch in section]
    return out


def _uniform(plan: Plan, start: int, at: int, count: int) -> list[tuple[int, int, bool]]:
    """(first layer, layers, frozen) of runs whose layers are all trained or all frozen by their number."""
    if not plan.frozen.layers:
        return [(at, count, False)] if count > 0 else []
    runs: list[tuple[int, int, bool]] = []
    for frozen, layers in groupby(range(at, at + max(0, count)), key=lambda layer: start + layer in plan.frozen.layers):
        listed = list(layers)
        runs.append((listed[0], len(listed), frozen))
    return runs


def wraps_layers(plan: Plan) -> bool:
    """Whether whole layers are checkpointed in Python; a compiled layer is one kernel that rebuilds what it needs itself."""
    profile = profile_of(plan.profile)
    if profile.compiles_layers(plan):
        return False
    return plan.checkpointing == "full" or (plan.checkpointing == "selective" and profile.per_operation)


def _together(plan: Plan, whole: int, period: int) -> list[tuple[int, int]]:
    """(times, layers) of `whole` runs of a pattern: those that differ from the others stand by themselves.

    Under adapters, or where parts are frozen, nothing in the first run may ask for a gradient, and the second is then the first that
    holds the shared tables. Under FSDP the last run starts the backward pass, when no earlier run's gradients are still being reduced;
    in a pipeline whose loop still names the received gradient it is the one that adds to a new tensor. With two stacks it makes the
    first gradient of what all layers read: the encoder's output, a bias.
    """
    partly = plan.frozen or (plan.lora is not None and plan.checkpointing != "full")
    first = plain(min(whole, 2 if partly else 1))
    loop = plan.degrees.pipeline > 1 and profile_of(plan.profile).pipeline_loop
    last = plain(min(whole - first, 1 if loop or plan.degrees.sharding in FSDP or plan.architecture.encoder else 0))
    middle = whole - first - last
    return [(1, period)] * first + [(middle, period)] * (middle > 0) + [(1, period)] * last


def _section(pattern: tuple[str, ...], start: int, sizes: list[tuple[int, int]], every: int, known: int) -> list[Stretch]:
    out: list[Stretch] = []
    at = start
    for times, length in sizes:
        kinds = tuple(pattern[plain((at + i) % len(pattern))] for i in range(plain(length)))
        out.append(Stretch(number=known + len(out) + 1, times=times, kinds=kinds, every=every))
        at += times * length
    return out
