"""A hole that the loss leaves in the caching allocator's segments."""

from __future__ import annotations

from peakgate.memory.parallel import rank_dims
from peakgate.memory.pipeline import Stage
from peakgate.memory.plan import Plan
from peakgate.memory.profiles import profile_of

FP32 = 4


def hole_bytes(plan: Plan, stage: Stage) -> int:
    """The loss leaves a hole: the logits are freed before their gradients come, and of the place of an fp32 copy and a 16-bit one the
    first fp32 gradient leaves what is too small for the second. So 14 bytes a logit are reserved where 12 are live.
    """
    whole = plan.loss == "full" and stage.heads and not plan.keep_logits and not profile_of(plan.profile).compiles_loss(plan)
    dims = rank_dims(plan)
    return dims["act"] * dims["T"] * dims["V"] if whole and dims["act"] < FP32 else 0
