"""What the caching allocator adds to the allocated bytes, on the path that does not replay every allocation.

Medians of replayed full-size jobs, printed by `tests/bench/fit_allocator.py`; no measurement enters. They apply to the bytes of
`by_ratio.pool_bytes`. Between one job and the next reserved spreads by some per cent around them: `peakgate explain` replays the job.
"""

from __future__ import annotations

from peakgate.memory.plan import Plan
from peakgate.memory.profiles import profile_of

Key = tuple[bool, str, bool, bool]
"""(expandable segments, checkpointing, adapters, gathered weights)."""

FLAT: dict[str, tuple[float, float]] = {"full": (1.041, 1.017), "none": (1.027, 1.022)}
"""The same by checkpointing where weights and gradients have one buffer each: medians over the replayed ranks of the 29 jobs of
tests/golden/published_jobs.jsonl that Megatron-LM builds of its own modules, with and without full recomputation."""

TABLE: dict[Key, tuple[float, float]] = {
    (False, "full", False, False): (1.074, 1.065),
    (False, "full", False, True): (1.145, 1.081),
    (False, "full", True, False): (1.044, 1.025),
    (False, "full", True, True): (1.149, 1.033),
    (False, "none", False, False): (1.062, 1.044),
    (False, "none", False, True): (1.083, 1.018),
    (False, "none", True, False): (1.025, 1.058),
    (False, "none", True, True): (1.051, 1.073),
    (True, "full", False, False): (1.040, 1.013),
    (True, "full", False, True): (1.102, 1.008),
    (True, "full", True, False): (1.009, 1.003),
    (True, "full", True, True): (1.075, 1.008),
    (True, "none", False, False): (1.006, 1.007),
    (True, "none", False, True): (1.038, 1.004),
    (True, "none", True, False): (1.005, 1.004),
    (True, "none", True, True): (1.026, 1.005),
}
"""(reserved over `pool_bytes` of the compute stream, required over allocated bytes)."""


def key_of(plan: Plan) -> Key:
    """What the table tells apart; per-operation checkpointing keeps as much as none does."""
    checkpointing = "full" if plan.checkpointing == "full" else "none"
    return plan.expandable_segments, checkpointing, plan.lora is not None, plan.degrees.sharding in ("fsdp", "hsdp")


def ratios_of(plan: Plan) -> tuple[float, float]:
    """The two ratios of a plan."""
    if profile_of(plan.profile).flat_buffers and not plan.expandable_segments:
        return FLAT["full" if plan.checkpointing == "full" else "none"]
    return TABLE[key_of(plan)]
