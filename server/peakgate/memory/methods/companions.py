"""A method's other models: what is resident of them, and their passes beside the policy's."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from peakgate.memory.dtypes import ITEMSIZE
from peakgate.memory.inference import infer
from peakgate.memory.pipeline import Stage, stages
from peakgate.memory.plan import Companion, Plan
from peakgate.memory.prediction import LedgerLine
from peakgate.memory.states import States, Weight, states_of
from peakgate.memory.tape import Tensor

if TYPE_CHECKING:
    from peakgate.memory.step import ForwardPass

Start = Callable[[Companion, Stage], "ForwardPass"]


def passes(plan: Plan, start: Start) -> dict[str, Callable[..., list[Tensor]]]:
    """A forward pass of each model that is not trained, to be run by the method's loss: it gives the logits, then what else its
    output names."""
    return {each.role: _pass(each, start) for each in plan.companions if not each.trained}


def _pass(companion: Companion, start: Start) -> Callable[..., list[Tensor]]:
    """The same model each time: what its sharding keeps gathered stays."""
    running: list[ForwardPass] = []

    def run(*, head: bool = True) -> list[Tensor]:
        if not running:
            (whole,) = stages(companion.plan.degrees, companion.plan.architecture.dims["L"], 1)
            running.append(start(companion, whole))
        return infer(running[0], cache_bytes(companion.plan) if companion.caches and head else 0, head=head)

    return run


def cache_bytes(plan: Plan) -> int:
    """Keys and values of every layer (transformers cache_utils.py: DynamicCache)."""
    dims = plan.architecture.dims
    itemsize = ITEMSIZE["bfloat16" if plan.formats.autocast else plan.formats.compute]
    return 2 * dims["L"] * plan.micro_batch * plan.sequence * dims["kv"] * itemsize


def resident_lines(plan: Plan, weights_of_plan: Callable[[Plan], tuple[Weight, ...]]) -> list[LedgerLine]:
    """What the other models keep all run long, in lines of their own."""
    return [line for each in plan.companions if not each.shares_weights for line in _lines(each, weights_of_plan(each.plan))]


def _lines(companion: Companion, weights: tuple[Weight, ...]) -> list[LedgerLine]:
    states = states_of(companion.plan, weights)
    name = f"{companion.role} model"
    frozen = [
        LedgerLine(category="parameters", item=f"{name}: weights", bytes=states.parameters + companion.plan.architecture.buffer_bytes)
    ]
    return frozen + (_trained(name, states) if companion.trained else [])


def _trained(name: str, states: States) -> list[LedgerLine]:
    return [
        LedgerLine(category="gradients", item=f"{name}: gradients", bytes=states.gradients or states.trained_bytes),
        LedgerLine(category="master_weights", item=f"{name}: master weights", bytes=states.master_weights),
        LedgerLine(category="optimizer_states", item=f"{name}: optimizer states", bytes=states.optimizer_states),
    ]
