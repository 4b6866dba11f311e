"""One rank's figures by the plain walk: what a single plan is worth, of a rank that no compiled walk is there for."""

from __future__ import annotations

from peakgate.memory.by_ratio import by_ratio
from peakgate.memory.choices import BEFORE_STEP
from peakgate.memory.compose import late_states
from peakgate.memory.counts import counts_of
from peakgate.memory.host_memory import host_bytes
from peakgate.memory.pipeline import Stage
from peakgate.memory.plan import Plan
from peakgate.memory.step import walk


def walked_rank(plan: Plan, stage: Stage) -> tuple[int, int, int]:
    """(allocated, required, host) bytes, as `compiled_rank.Figures` has them."""
    walked = walk(plan, stage)
    counts = counts_of(plan, stage, walked, details=False)
    base, late = sum(line.bytes for line in counts.resident), late_states(plan, walked.states)
    before = base - late + max(blocks for phase, blocks in counts.blocks.items() if phase in BEFORE_STEP)
    after = base + max(blocks for phase, blocks in counts.blocks.items() if phase not in BEFORE_STEP)
    allocated = max(before, after)
    _, required = by_ratio(plan, counts, base - (late if before > after else 0), allocated)
    return allocated, required, host_bytes(plan, walked.states)
