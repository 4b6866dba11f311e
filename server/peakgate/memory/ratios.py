"""What the caching allocator adds to the allocated bytes, on the path that does not replay every allocation.

Medians of 180 replayed full-size jobs, printed by `tests/bench/fit_allocator.py`; no measurement enters. Between one job and the next
reserved spreads from 1.03 to 1.27 and required from 1.01 to 1.17: `peakgate explain` replays the job itself. With expandable segments
a pool is one growing segment, which a replay of eight full-size jobs put at 1.0005 to 1.018.
"""

from __future__ import annotations

from peakgate.memory.plan import Plan
from peakgate.memory.profiles import profile_of

CLASSIC: dict[tuple[str, bool], tuple[float, float]] = {
    ("full", False): (1.066, 1.053),
    ("full", True): (1.089, 1.030),
    ("none", False): (1.147, 1.061),
    ("none", True): (1.055, 1.043),
}
"""(checkpointing, adapters) -> (reserved, required) over allocated bytes."""

FLAT: dict[str, tuple[float, float]] = {"full": (1.041, 1.017), "none": (1.027, 1.022)}
"""The same by checkpointing where weights and gradients have one buffer each: medians over the replayed ranks of the 29 jobs of
tests/golden/published_jobs.jsonl whose framework is Megatron-LM and builds the block of its own modules, with and without full recomputation."""

EXPANDABLE = (1.002, 1.002)
"""The same with expandable segments."""


def ratios_of(plan: Plan) -> tuple[float, float]:
    """(reserved, required) over allocated bytes."""
    if plan.expandable_segments:
        return EXPANDABLE
    if profile_of(plan.profile).flat_buffers:
        return FLAT["full" if plan.checkpointing == "full" else "none"]
    return CLASSIC["full" if plan.checkpointing == "full" else "none", plan.lora is not None]
