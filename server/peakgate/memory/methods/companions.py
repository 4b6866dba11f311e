"""A method's other models: what is resident of them, and their passes beside the policy's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from peakgate.memory.forward import ForwardPass
from peakgate.memory.inference import infer
from peakgate.memory.meter import Meter
from peakgate.memory.methods.outputs import cache_bytes
from peakgate.memory.pipeline import stages
from peakgate.memory.plan import Companion, Plan
from peakgate.memory.prediction import LedgerLine
from peakgate.memory.states import States, states_of
from peakgate.memory.tape import Tensor
from peakgate.memory.weighing import sharded_census, weights_of_plan


def passes(plan: Plan, meter: Meter, *, each: bool) -> dict[str, Callable[..., list[Tensor]]]:
    """A forward pass of each model that is not trained, to be run by the method's loss: it gives the logits, then what else its
    output names."""
    return {companion.role: _pass(companion, meter, each=each) for companion in plan.companions if not companion.trained}


def _pass(companion: Companion, meter: Meter, *, each: bool) -> Callable[..., list[Tensor]]:
    """The same model each time: what its sharding keeps gathered stays."""
    running: list[ForwardPass] = []

    def run(*, head: bool = True) -> list[Tensor]:
        if not running:
            running.append(_started(companion, meter, each=each))
        return infer(running[0], cache_bytes(companion.plan) if companion.caches and head else 0, head=head)

    return run


def _started(companion: Companion, meter: Meter, *, each: bool) -> ForwardPass:
    """The model on the policy's meter; of the policy itself the ends are gathered already."""
    plan = companion.plan
    (whole,) = stages(plan.degrees, plan.architecture.dims["L"], 1)
    held = sharded_census(plan, whole)
    if held and companion.shares_weights:
        held = replace(held, embedding=(), head=())
    return ForwardPass(plan, whole, meter, each=each, census=held)


def resident_lines(plan: Plan) -> list[LedgerLine]:
    """What the other models keep all run long, in lines of their own."""
    return [line for each in plan.companions if not each.shares_weights for line in _lines(each)]


def _lines(companion: Companion) -> list[LedgerLine]:
    states = states_of(companion.plan, weights_of_plan(companion.plan))
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
