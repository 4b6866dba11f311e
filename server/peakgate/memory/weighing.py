"""The weights of a stage, or of a whole model, found by running it forward without a graph."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from peakgate.memory.census import Census, by_mesh, smallest
from peakgate.memory.collectives import shards
from peakgate.memory.forms import UntraceableError
from peakgate.memory.forward import ForwardPass
from peakgate.memory.machine import ENDS
from peakgate.memory.meter import WALKED, Meter, exact
from peakgate.memory.pipeline import Stage, stages
from peakgate.memory.plan import Plan
from peakgate.memory.weights import Weight, weights_of


def weighed(plan: Plan, stage: Stage) -> ForwardPass:
    """A stage after a forward pass without a graph or shards: its weights are known."""
    forward = ForwardPass(
        replace(plan, checkpointing="none", loss="full", companions=()), stage, Meter(exact, frozenset(WALKED)), each=False
    )
    forward.machine.tape.recording = False
    forward.head_and_loss(forward.forward_layers())
    return forward


@lru_cache(maxsize=512)
def weights_of_plan(plan: Plan) -> tuple[Weight, ...]:
    """The weights of all stages, on one rank of a tensor parallel group."""
    (stage,) = stages(plan.degrees, plan.architecture.dims["L"], 1)
    machine = weighed(plan, stage).machine
    return tuple(weights_of(machine.parameters, machine.tape.times))


def sharded_census(plan: Plan, stage: Stage) -> Census | None:
    """What a rank holds of which its shards are counted; None where nothing is sharded."""
    return census(plan, stage) if shards(plan) else None


def census(plan: Plan, stage: Stage) -> Census:
    """Counts the weights of a stage by running it forward without a graph."""
    few = smallest(plan)
    try:
        return _known_census(few, stage)
    except UntraceableError:  # degrees that are variables have no hash
        return _census(few, stage)


def _census(plan: Plan, stage: Stage) -> Census:
    forward = weighed(plan, stage)
    machine = forward.machine
    weights = weights_of(machine.parameters, machine.tape.times)
    ends = machine.parameters.get(ENDS, [])
    layers, experts = by_mesh({kind: machine.parameters[layer] for layer, kind in forward.sharding.layer_kind.items()}, plan.degrees)
    return Census(
        layers=layers,
        experts=experts,
        embedding=tuple(p.elements for p in ends if p.name.startswith("embedding")),
        head=tuple(p.elements for p in ends if not p.name.startswith("embedding")),
        total=sum(w.elements * w.count for w in weights),
        trainable=sum(w.elements * w.count for w in weights if w.trainable),
    )


_known_census = lru_cache(maxsize=512)(_census)
