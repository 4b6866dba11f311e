"""The weights of a whole model, without a step."""

from __future__ import annotations

from functools import lru_cache

from peakgate.memory.pipeline import stages
from peakgate.memory.plan import Plan
from peakgate.memory.states import Weight, weights_of
from peakgate.memory.step import weighed


@lru_cache(maxsize=512)
def weights_of_plan(plan: Plan) -> tuple[Weight, ...]:
    """The weights of all stages, on one rank of a tensor parallel group."""
    (stage,) = stages(plan.degrees, plan.architecture.dims["L"], 1)
    machine = weighed(plan, stage).machine
    return tuple(weights_of(machine.parameters, machine.tape.times))
