"""What the caching allocator adds to the allocated bytes, on the path that does not replay every allocation.

Medians of replayed full-size jobs, printed by `tests/bench/fit_allocator.py`; no measurement enters. They apply to the bytes of
`by_ratio.pool_bytes`. Between one job and the next reserved spreads by some per cent around them: `peakgate explain` replays the job.
"""

from __future__ import annotations

from peakgate.memory.plan import Plan
from peakgate.memory.profiles import profile_of

FSDP2 = 2

Key = tuple[bool, str, bool, str]
"""(expandable segments, checkpointing, adapters, what is gathered: nothing, flat parameters, FSDP2's units)."""

FLAT: dict[str, tuple[float, float]] = {"full": (1.041, 1.017), "none": (1.027, 1.022)}
"""The same by checkpointing where weights and gradients have one buffer each: medians over the replayed ranks of the 29 jobs of
tests/golden/published_jobs.jsonl that Megatron-LM builds of its own modules, with and without full recomputation."""

TABLE: dict[Key, tuple[float, float]] = {
    (False, "full", False, ""): (1.082, 1.058),
    (False, "full", False, "flat"): (1.076, 1.087),
    (False, "full", False, "units"): (1.071, 1.077),
    (False, "full", True, ""): (1.044, 1.025),
    (False, "full", True, "flat"): (1.073, 1.033),
    (False, "none", False, ""): (1.032, 1.037),
    (False, "none", False, "flat"): (1.052, 1.011),
    (False, "none", False, "units"): (1.024, 1.044),
    (False, "none", True, ""): (1.025, 1.058),
    (False, "none", True, "flat"): (1.021, 1.073),
    (False, "selective", False, "units"): (1.078, 1.081),
    (True, "full", False, ""): (1.055, 1.011),
    (True, "full", False, "flat"): (1.023, 1.006),
    (True, "full", False, "units"): (1.012, 1.003),
    (True, "full", True, ""): (1.009, 1.003),
    (True, "full", True, "flat"): (1.015, 1.007),
    (True, "none", False, ""): (1.006, 1.006),
    (True, "none", False, "flat"): (1.012, 1.003),
    (True, "none", False, "units"): (1.009, 1.005),
    (True, "none", True, ""): (1.005, 1.004),
    (True, "none", True, "flat"): (1.007, 1.005),
    (True, "selective", False, "units"): (1.009, 1.004),
}
"""(reserved over `pool_bytes` of the compute stream, required over allocated bytes)."""


def key_of(plan: Plan) -> Key:
    """What the table tells apart: adapters are rows of flat parameters, per-operation checkpointing is one of units alone."""
    gathers = plan.degrees.sharding in ("fsdp", "hsdp")
    units = gathers and plan.fsdp_version == FSDP2 and plan.lora is None
    checkpointing = plan.checkpointing if plan.checkpointing == "full" or (units and plan.checkpointing == "selective") else "none"
    return plan.expandable_segments, checkpointing, plan.lora is not None, "units" if units else "flat" if gathers else ""


def ratios_of(plan: Plan) -> tuple[float, float]:
    """The two ratios of a plan."""
    if profile_of(plan.profile).flat_buffers and not plan.expandable_segments:
        return FLAT["full" if plan.checkpointing == "full" else "none"]
    return TABLE[key_of(plan)]
