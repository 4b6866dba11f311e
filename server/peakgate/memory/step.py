"""One training step of one rank, walked allocation by allocation: forward, loss, backward, optimizer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from peakgate.memory.allocator import block_bytes
from peakgate.memory.forward import ForwardPass
from peakgate.memory.further_graphs import further_graphs
from peakgate.memory.inputs import input_bytes
from peakgate.memory.meter import Event, High, Meter, Point, exact
from peakgate.memory.methods.companions import passes
from peakgate.memory.offload import on_host
from peakgate.memory.optimizers import step_temporary, temporary_events
from peakgate.memory.pipeline import Stage
from peakgate.memory.pipeline_loop import PipelineLoop
from peakgate.memory.plan import Plan
from peakgate.memory.profiles import profile_of
from peakgate.memory.states import States, states_of, step_temporary_bytes
from peakgate.memory.tape import Tensor
from peakgate.memory.weighing import sharded_census
from peakgate.memory.weights import Weight, weights_of
from peakgate.memory.zero_bubble import waiting_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Walk:
    """Bytes beyond the resident states of `states`; `highs` by phase."""

    highs: dict[str, High]
    states: States
    weights: list[Weight]
    held_per_micro_batch: int
    points: tuple[Point, ...]
    input_bytes: int
    events: tuple[Event, ...] = ()
    """From the first micro-batch, which makes the gradients, to the end of the last one …"""
    repeats_from: int = 0
    """… and where the part begins that repeats while gradients stay."""
    head_at: int = 0
    backward_at: int = 0
    """Where the head and the loss, and where the backward pass begin in `events`."""
    pools: Mapping[str, int] = field(default_factory=dict)
    """Highest blocks by CUDA stream."""
    streams: Mapping[int, str] = field(default_factory=dict)


def walk(plan: Plan, stage: Stage, *, record: bool = False) -> Walk:
    """Walks one step in steady state. `record` keeps every allocation and free, walking each layer."""
    meter = meter_of(plan, [] if record else None)
    step, first, states, weights = run(plan, stage, meter, each=record)
    return Walk(
        highs=meter.highs,
        states=states,
        weights=weights,
        held_per_micro_batch=sum(step.held.values()),
        points=tuple(meter.points),
        input_bytes=input_bytes(plan, step.machine.dims) if profile_of(plan.profile).tables else 0,
        events=tuple(meter.events or ()),
        repeats_from=first,
        head_at=step.head_at,
        backward_at=step.backward_at,
        pools=meter.pools.high,
        streams=meter.streams,
    )


def meter_of(plan: Plan, events: list[Event] | None = None) -> Meter:
    """A meter for the plan's profile; `events` takes every allocation and free."""
    profile = profile_of(plan.profile)
    return Meter(block_bytes if profile.rounds else exact, profile.ignored, events)


def run(plan: Plan, stage: Stage, meter: Meter, *, each: bool = False) -> tuple[Step, int, States, list[Weight]]:
    """Runs one step in steady state past a meter: what is left of it, where its events repeat from, its states and weights."""
    profile = profile_of(plan.profile)
    step = Step(plan, stage, meter, each=each)
    step.sharding.final = plan.accumulation == 1
    step.micro_step(held=None)
    first = len(meter.events or ())
    alike = each and profile.flat_buffers  # gradients have buffers of their own: every micro-batch is like the first
    again = plan.accumulation > 1 or not plan.set_to_none or profile.holds_graph
    if again and not alike:  # the second pass finds gradients, or an earlier graph; all later ones are equal to it
        meter.forget()  # but for the events: the gradients that the second pass finds are the first one's
        step.sharding.final = True
        step.micro_step(held=step.held)
    step.sharding.step_ended()
    weights = weights_of(step.machine.parameters, step.machine.tape.times)
    states = states_of(plan, weights)
    step.optimize(states, weights)
    return step, first, states, weights


class Step(ForwardPass):
    """A forward pass and what follows it, with the other models of the training method beside it."""

    def __init__(self, plan: Plan, stage: Stage, meter: Meter, *, each: bool) -> None:
        super().__init__(plan, stage, meter, each=each, census=sharded_census(plan, stage))
        self.machine.companions = passes(plan, meter, each=each)
        tape = self.machine.tape
        tape.before_layer, tape.after_layer = self.sharding.before_backward, self.sharding.after_backward
        self.loop = PipelineLoop(self.machine, stage)
        self.held: dict[str, int] = {}
        self.head_at = self.backward_at = self.waiting = 0

    # ---- one micro-batch
    def micro_step(self, held: dict[str, int] | None) -> None:
        """Forward, loss and backward of one micro-batch; `held`: what each other micro-batch in flight keeps."""
        meter, tape, machine = self.meter, self.machine.tape, self.machine
        tape.nodes, machine.cursor, machine.caching = [], {}, True
        others = self.stage.in_flight - self.stage.chunks  # a walk holds all chunks of one micro-batch
        in_flight = {key: size * others // self.stage.chunks for key, size in (held or {}).items()}
        if held:
            in_flight["activations"] += self.stage.waiting * self.waiting // self.stage.chunks
        pool = tape.pool_of((1, 0))
        numbers = {key: meter.add(size, size, key, pool) for key, size in in_flight.items()}
        meter.enter("forward")
        self.sharding.begin()
        before = meter.blocks_now("activations")
        x = self.forward_layers()
        self.head_at = len(meter.events or ())
        loss, logits = self.head_and_loss(x)
        self.waiting = waiting_bytes(tape.nodes, tape.times) if self.stage.waiting else 0
        loss = self.loop.sent(loss)
        self.drop_copies()
        self.held = {"activations": max(0, meter.blocks_now("activations") - before)}
        meter.enter("backward")
        self.backward_at = len(meter.events or ())
        meter.mark("start of backward")
        self.sharding.begin_backward()
        with further_graphs(self.plan, meter, self.held["activations"]):
            self._backward(loss)
        self.sharding.end()
        meter.mark("end of backward")
        self.loop.computed_gradient()
        meter.enter("optimizer")
        for storage in [loss.storage, *([logits.storage] if logits and self.plan.keep_logits else [])]:
            storage.drop()
        self.drop_outputs()
        for key, size in in_flight.items():
            meter.sub(size, size, key, numbers[key], pool)
        machine.pins.step_ended(named=machine.profile.holds_graph)

    def _backward(self, loss: Tensor) -> None:
        tape = self.machine.tape
        if loss.node is None:
            return
        loss.node.grads[loss.output] = tape.allocate(loss.nbytes if not self.stage.heads else 4)
        self.loop.received_gradient(loss.node.grads[loss.output])
        tape.backward(tape.nodes)

    # ---- optimizer
    def optimize(self, states: States, weights: list[Weight]) -> None:
        """The temporaries of the optimizer's step, on top of all gradients."""
        if profile_of(self.plan.profile).optimizer_temporaries and "optimizer_states" not in on_host(self.plan):
            self._temporary(step_temporary_bytes(self.plan, states), weights)
        self.meter.mark_high("optimizer step")
        self.meter.enter("end")

    def _temporary(self, nbytes: int, weights: list[Weight]) -> None:
        """One figure for the meter; in the list of events a tensor for each trained weight."""
        meter = self.meter
        events, meter.events = meter.events, None
        number = meter.add(nbytes, nbytes, "temporaries")
        meter.sub(nbytes, nbytes, "temporaries", number)
        meter.events = events
        if events is None:
            return
        trained = [weight.elements for weight in weights if weight.trainable for _ in range(weight.count)]
        events += temporary_events(nbytes, trained, step_temporary(self.plan.optimizer, self.plan.implementation), meter.numbers)
        meter.numbers += 2 * len(trained)
