"""From allocated bytes to what the caching allocator reserves, and to what a card must have, without a replay."""

from __future__ import annotations

from peakgate.memory.counts import Counts
from peakgate.memory.plan import Plan
from peakgate.memory.pools import COMPUTE
from peakgate.memory.profiles import profile_of
from peakgate.memory.ratios import ratios_of


def by_ratio(plan: Plan, counts: Counts, base: int, allocated: int) -> tuple[int, int]:
    """Reserved and required bytes by the table that was fitted to replays; a profile that rounds nothing reserves what it allocates.

    `base`: resident bytes, which are the compute stream's.
    """
    if not profile_of(plan.profile).rounds:
        return allocated, allocated
    reserved, required = ratios_of(plan)
    compute, others = pool_bytes(counts, base)
    reserves = max(allocated, int(compute * reserved) + others)
    return reserves, min(int(allocated * required), reserves)  # a job never needs more than it reserves where there is room


def pool_bytes(counts: Counts, base: int) -> tuple[int, int]:
    """(compute stream, other streams): what each stream's pools hold at their highest, whenever it is."""
    others = sum(size for stream, size in counts.pools.items() if stream != COMPUTE)
    highest, hole = counts.pools.get(COMPUTE, 0), counts.hole
    at_loss = [counts.blocks["backward"], counts.blocks["loss"] + hole] if hole and "loss" in counts.blocks else [0]
    return base + max(highest, min(highest, *at_loss) + hole), others
