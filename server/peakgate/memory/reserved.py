"""From allocated bytes to what the caching allocator reserves, and to what a card must have."""

from __future__ import annotations

from peakgate.memory.allocator import replay, smallest_cap
from peakgate.memory.flat_buffers import ranks_of, run_events
from peakgate.memory.optimizers import ROWS
from peakgate.memory.pipeline import Stage
from peakgate.memory.plan import Plan
from peakgate.memory.prediction import LedgerLine
from peakgate.memory.profiles import profile_of
from peakgate.memory.ratios import ratios_of
from peakgate.memory.step import Walk, walk


def by_ratio(plan: Plan, allocated: int) -> tuple[int, int]:
    """(reserved, required) bytes by the table that was fitted to replays; a profile that rounds nothing reserves what it allocates."""
    if not profile_of(plan.profile).rounds:
        return allocated, allocated
    reserved, required = ratios_of(plan)
    return int(allocated * reserved), int(allocated * required)


def replayed(plan: Plan, stage: Stage, resident: list[LedgerLine], allocated: int) -> tuple[int, int]:
    """Reserved and required bytes from a replay of two steps; with expandable segments by ratio (their rules are not replayed)."""
    if not profile_of(plan.profile).rounds or plan.expandable_segments:
        return by_ratio(plan, allocated)
    recorded = walk(plan, stage, record=True)
    if profile_of(plan.profile).flat_buffers:
        sizes = []
        runs = [(load, [events] * 2) for load, events in (run_events(plan, stage, recorded, resident, rank) for rank in ranks_of(plan))]
    else:
        sizes, step = resident_sizes(plan, recorded, resident), list(recorded.events)
        stays = [[*step, *step[recorded.repeats_from :]]]  # gradients that stay are not made again
        runs = [([], [step] * 2 if plan.set_to_none else stays)]
    replays = [(replay(sizes, steps, load=load), load, steps) for load, steps in runs]
    seen, load, steps = max(replays, key=lambda each: each[0].reserved_bytes)
    cap = smallest_cap(sizes, steps, seen.allocated_bytes, seen.reserved_bytes, load=load)
    return max(seen.reserved_bytes, allocated), max(allocated, cap)


def resident_sizes(plan: Plan, walked: Walk, resident: list[LedgerLine]) -> list[int]:
    """One size for each weight and each of its states, as the allocator sees them; the rest line by line."""
    total = {
        line.category: line.bytes for line in resident if line.category in ("parameters", "master_weights", "optimizer_states", "gradients")
    }
    elements = max(1, sum(w.elements * w.count for w in walked.weights))
    trained = max(1, sum(w.elements * w.count for w in walked.weights if w.trainable))
    sizes: list[int] = []
    for weight in walked.weights:
        for _ in range(weight.count):
            sizes.append(total.get("parameters", 0) * weight.elements // elements)
            if weight.trainable:
                sizes += [total[key] * weight.elements // trained for key in ("master_weights", "gradients") if key in total]
                copies = max(1, round(ROWS[plan.optimizer].copies))
                sizes += [total.get("optimizer_states", 0) * weight.elements // trained // copies] * copies
    return [*sizes, *(line.bytes for line in resident if line.category not in total)]
