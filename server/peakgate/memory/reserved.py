"""Reserved and required bytes from a replay of every allocation through the caching allocator."""

from __future__ import annotations

from collections.abc import Sequence

from peakgate.memory.flat_buffers import ranks_of, run_events, streams_of
from peakgate.memory.meter import Event
from peakgate.memory.optimizers import ROWS
from peakgate.memory.pipeline import Stage
from peakgate.memory.plan import Plan
from peakgate.memory.prediction import LedgerLine
from peakgate.memory.profiles import profile_of
from peakgate.memory.replay import Script, play, smallest_cap
from peakgate.memory.states import COUNTER_BYTES, counters_of
from peakgate.memory.step import Walk, walk

STATES = ("parameters", "master_weights", "optimizer_states", "gradients")
"""Categories of which every weight has a tensor."""


def replayed(plan: Plan, stage: Stage, resident: Sequence[LedgerLine], allocated: int) -> tuple[int, int]:
    """Reserved and required bytes from a replay of three steps: the first without optimizer states, then two in steady state."""
    recorded = walk(plan, stage, record=True)
    scripts = scripts_of(plan, stage, recorded, resident)
    seen, script = max(((play(each), each) for each in scripts), key=lambda pair: pair[0].reserved_bytes)
    return max(seen.reserved_bytes, allocated), max(allocated, smallest_cap(script, seen))


def scripts_of(plan: Plan, stage: Stage, recorded: Walk, resident: Sequence[LedgerLine]) -> list[Script]:
    """What a run of this plan allocates, on each rank worth a replay."""
    if profile_of(plan.profile).flat_buffers:
        runs = [run_events(plan, stage, recorded, resident, rank) for rank in ranks_of(plan)]
        streams = streams_of(plan, stage, recorded)
        return [
            Script(load=load, resident=(), steps=[step] * 2, streams=streams, expandable=plan.expandable_segments) for load, step in runs
        ]
    late = [line for line in resident if line.category == "optimizer_states" and recorded.states.lazy_optimizer]
    return [
        Script(
            resident=resident_sizes(plan, recorded, [line for line in resident if line not in late]),
            steps=_steps(plan, recorded),
            late=resident_sizes(plan, recorded, late),
            streams=recorded.streams,
            expandable=plan.expandable_segments,
            stays=not plan.set_to_none,
        )
    ]


def _steps(plan: Plan, recorded: Walk) -> list[tuple[Event, ...]]:
    """The first step and two in steady state; gradients that stay are not made again."""
    if plan.set_to_none:
        return [recorded.events] * 3
    again = recorded.events[recorded.repeats_from :]
    return [recorded.events[: recorded.repeats_from], again, again]


def resident_sizes(plan: Plan, walked: Walk, resident: Sequence[LedgerLine]) -> list[int]:
    """One size for each weight and each of its states, as the allocator sees them; the rest line by line."""
    total = {line.category: line.bytes for line in resident if line.category in STATES}
    elements = max(1, sum(w.elements * w.count for w in walked.weights))
    trained = max(1, sum(w.elements * w.count for w in walked.weights if w.trainable))
    counters = counters_of(plan, walked.weights) if total.get("optimizer_states") else 0
    states, copies = total.get("optimizer_states", 0) - COUNTER_BYTES * counters, max(1, ROWS[plan.optimizer].copies)
    sizes = [COUNTER_BYTES] * counters
    for weight in walked.weights:
        for _ in range(weight.count):
            sizes.append(total.get("parameters", 0) * weight.elements // elements)
            if weight.trainable:
                sizes += [total[key] * weight.elements // trained for key in ("master_weights", "gradients") if key in total]
                sizes += [states * weight.elements // trained // copies] * copies
    return [*sizes, *(line.bytes for line in resident if line.category not in total)]
