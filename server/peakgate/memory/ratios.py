"""What the caching allocator adds to the allocated bytes, on the path that does not replay every allocation.

`tests/bench/fit_allocator.py` replays full-size jobs through `allocator.py` and prints this table; it is not fitted to any measurement.
"""

from __future__ import annotations

from peakgate.memory.plan import Plan

RATIOS: dict[tuple[str, bool], tuple[float, float]] = {
    ("full", False): (1.09, 1.02), ("full", True): (1.005, 1.003),
    ("none", False): (1.06, 1.02), ("none", True): (1.01, 1.005),
}
"""(checkpointing, expandable segments) -> (reserved, required) over allocated."""


def ratios_of(plan: Plan) -> tuple[float, float]:
    """(reserved, required) over allocated bytes."""
    return RATIOS["full" if plan.checkpointing == "full" else "none", plan.expandable_segments]
