"""One training step of one rank, walked allocation by allocation: forward, loss, backward, optimizer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial

from peakgate.memory.allocator import block_bytes
from peakgate.memory.census import Census, by_mesh, smallest
from peakgate.memory.checkpoint import Segment, rebuilt, rebuilt_core
from peakgate.memory.collectives import sharding_of, shards
from peakgate.memory.compiled import compiled_layer
from peakgate.memory.cuda_graphs import pool_of
from peakgate.memory.dora import dora
from peakgate.memory.embedding import embedded, global_sizes, mask_width, received_tables
from peakgate.memory.forms import UntraceableError
from peakgate.memory.further_graphs import further_graphs
from peakgate.memory.inputs import input_bytes
from peakgate.memory.loss import loss_of
from peakgate.memory.machine import ENDS, Machine
from peakgate.memory.meter import WALKED, Event, High, Meter, Point, exact
from peakgate.memory.methods.companions import passes
from peakgate.memory.multi_token import with_further_losses
from peakgate.memory.offload import on_host
from peakgate.memory.optimizers import step_temporary, temporary_events
from peakgate.memory.pipeline import Stage
from peakgate.memory.pipeline_loop import PipelineLoop
from peakgate.memory.plain import run as plain_network
from peakgate.memory.plan import Companion, Plan
from peakgate.memory.profiles import profile_of
from peakgate.memory.roles import REBUILT
from peakgate.memory.sharding import Sharding
from peakgate.memory.shared_tensors import held_by
from peakgate.memory.stacks import Stack, stacks_of
from peakgate.memory.states import States, Weight, states_of, step_temporary_bytes, weights_of
from peakgate.memory.stretches import Stretch
from peakgate.memory.tape import Tensor
from peakgate.memory.zero_bubble import waiting_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Walk:
    """Bytes beyond the resident states of `states`; `highs` by phase; `first` the same for the first step of a run."""

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


def run(plan: Plan, stage: Stage, meter: Meter, *, each: bool = False) -> tuple[ForwardPass, int, States, list[Weight]]:
    """Runs one step in steady state past a meter: what is left of it, where its events repeat from, its states and weights."""
    profile = profile_of(plan.profile)
    step = ForwardPass(plan, stage, meter, each=each)
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


def census(plan: Plan, stage: Stage) -> Census:
    """Counts the weights of a stage by running it forward without a graph."""
    few = smallest(plan)
    try:
        return _known_census(few, stage)
    except UntraceableError:  # degrees that are variables have no hash
        return _census(few, stage)


def _census(plan: Plan, stage: Stage) -> Census:
    step = weighed(plan, stage)
    machine = step.machine
    weights = weights_of(machine.parameters, machine.tape.times)
    ends = machine.parameters.get(ENDS, [])
    layers, experts = by_mesh({kind: machine.parameters[layer] for layer, kind in step.sharding.layer_kind.items()}, plan.degrees)
    return Census(
        layers=layers,
        experts=experts,
        embedding=tuple(p.elements for p in ends if p.name.startswith("embedding")),
        head=tuple(p.elements for p in ends if not p.name.startswith("embedding")),
        total=sum(w.elements * w.count for w in weights),
        trainable=sum(w.elements * w.count for w in weights if w.trainable),
    )


_known_census = lru_cache(maxsize=512)(_census)


def weighed(plan: Plan, stage: Stage) -> ForwardPass:
    """A stage after a forward pass without a graph or shards: its weights are known."""
    step = ForwardPass(
        replace(plan, checkpointing="none", loss="full", companions=()), stage, Meter(exact, frozenset(WALKED)), each=False, counting=True
    )
    step.machine.tape.recording = False
    step.head_and_loss(step.forward_layers())
    return step


class ForwardPass:
    """The state of a step while it is walked."""

    def __init__(self, plan: Plan, stage: Stage, meter: Meter, *, each: bool, counting: bool = False, rootless: bool = False) -> None:
        self.plan, self.stage, self.meter = plan, stage, meter
        self.machine = Machine(plan, meter)
        again = {block for roles in self.machine.kinds.values() for block in roles.values() if block.startswith(REBUILT)}
        self.machine.special = {block: partial(rebuilt, name=block.removeprefix(REBUILT)) for block in again}
        self.machine.special |= {"rebuilt_core": rebuilt_core, "compiled_layer": compiled_layer, "dora": dora}
        self.stacks = stacks_of(plan, stage, each=each)
        self.machine.frozen_stretches = frozenset(s.number for stack in self.stacks for s in stack.stretches if s.frozen)
        self.sharding = self._sharding(counting=counting, rootless=rootless)
        self.machine.model_output = self.sharding.after_model
        self.loop = PipelineLoop(self.machine, stage)
        self.held: dict[str, int] = {}
        self.saved_per_layer: dict[str, int] = {}
        self.head_at = self.backward_at = self.waiting = 0
        self.outputs: list[Tensor] = []  # what the model's output names beside loss and logits
        self.machine.companions = passes(plan, partial(self._beside, each=each))
        tape = self.machine.tape
        tape.pool_of = pool_of(plan)
        tape.pool = tape.pool_of(ENDS)
        tape.before_layer, tape.after_layer = self.sharding.before_backward, self.sharding.after_backward

    def _sharding(self, *, counting: bool, rootless: bool) -> Sharding:
        """What the plan's data parallelism does around the layers; `rootless`: the ends are gathered already."""
        own = [stretch for stack in self.stacks for stretch in stack.stretches]
        last = (own[-1].number, len(own[-1].kinds) - 1) if own else ENDS
        held = None if counting or not shards(self.plan) else census(self.plan, self.stage)
        return sharding_of(self.machine, replace(held, embedding=(), head=()) if held and rootless else held, last)

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

    # ---- forward
    def forward_layers(self) -> Tensor:
        """Embedding and layers: the hidden state behind the last layer of the stage."""
        tape, network = self.machine.tape, self.plan.architecture.network
        tape.times[0] = 1
        if network:
            tape.layer = ENDS
            return plain_network.forward(self.machine, network)
        x: Tensor | None = None
        for stack in self.stacks:
            x = self._stack(stack, x)
        if x is None:
            raise AssertionError("a stage has a stack")
        return x

    def _stack(self, stack: Stack, before: Tensor | None) -> Tensor:
        """One stack: its embedding, its layers and its last norm; lets go of what its forward function named."""
        machine, tape = self.machine, self.machine.tape
        tape.layer = ENDS
        machine.enter(stack.kind)
        x = self._first_hidden(stack, before)
        if stack is self.stacks[0]:
            self.sharding.after_embedding()
        for name, size in global_sizes(machine).items():
            rows = self.plan.micro_batch if name.startswith(("mask", "cross_mask")) else 1
            machine.globals[name] = Tensor(tape.allocate(size, "activations"), rows, mask_width(machine, name, size), 1)
        self.meter.mark("embedding")
        for stretch in stack.stretches:
            x = self._stretch(stretch, x, stack.kind)
        tape.layer = ENDS
        y = x
        if self.stage.heads or stack.encodes:
            if not stack.encodes:
                self.sharding.before_head()
            (y,) = machine.call("final", "final", [x], None)
            x.storage.drop()
        for tensor in [*machine.globals.values(), *machine.model_locals.values()]:
            tensor.storage.drop()
        machine.globals, machine.model_locals = {}, {}
        return y

    def _first_hidden(self, stack: Stack, before: Tensor | None) -> Tensor:
        """The embedded tokens, or what the stage before has sent; the layers of a decoder also see what the encoder made."""
        machine, tape = self.machine, self.machine.tape
        dims = machine.dims
        if not self.stage.embeds and before is None:
            machine.globals |= received_tables(machine, stack)
            received = Tensor(tape.allocate(dims["Ts"] * dims["h"] * dims["act"]), dims["Ts"], dims["h"], dims["act"])
            x = machine.leaf(received)
            received.storage.drop()
            return x
        if before is not None:
            before.storage.hold()
            self.outputs.append(before)
            machine.globals["encoded"] = machine.beside = before
        return embedded(machine, stack)

    def _stretch(self, stretch: Stretch, x: Tensor, stack: str) -> Tensor:
        tape = self.machine.tape
        tape.times[stretch.number] = stretch.times
        before = self.meter.live_now()
        with self.meter.repeated(stretch.times, "layer"):
            for at in range(0, len(stretch.kinds), stretch.every or 1):
                layers = [((stretch.number, i), stretch.kinds[i]) for i in range(at, min(at + (stretch.every or 1), len(stretch.kinds)))]
                y = self._run(layers, x, checkpointed=stretch.every > 0)
                x.storage.drop()
                x = y
        if stretch.number <= 2 or len(self.stacks) > 1:
            self.saved_per_layer[stack] = (self.meter.live_now() - before) // (stretch.times * len(stretch.kinds)) - self._only_cached(
                stretch
            )
        return x

    def _only_cached(self, stretch: Stretch) -> int:
        """Bytes a layer of weight copies that autocast's cache holds and autograd does not: those of biases."""
        copies = [copy for layer, copy in self.machine.copies.values() if layer[0] == stretch.number and copy.storage.holders == 1]
        return sum(copy.nbytes for copy in copies) // len(stretch.kinds)

    def _run(self, layers: list[tuple[tuple[int, int], str]], x: Tensor, *, checkpointed: bool) -> Tensor:
        machine, sharding = self.machine, self.sharding
        passes = 0

        def run(held: list[Tensor]) -> Tensor:
            nonlocal passes
            passes += 1
            first, hidden = passes == 1, held[0]
            for i, (layer, kind) in enumerate(layers):
                if first:
                    sharding.before_forward(layer, kind)
                else:
                    sharding.before_rebuild(layer)
                try:
                    y = machine.run_layer(layer, kind, hidden)
                finally:  # also when a recomputation stops in the middle of a layer
                    if i:
                        hidden.storage.drop()
                if first:
                    sharding.after_forward(layer)
                hidden = y
            return hidden

        if not checkpointed:
            return run([x])
        segment = Segment(machine, run, [x, *held_by(machine.globals, [kind for _, kind in layers])], layers[-1][0])
        return segment.reentrant() if self.plan.reentrant else segment.nonreentrant()

    def head_and_loss(self, x: Tensor) -> tuple[Tensor, Tensor | None]:
        """(loss, logits); without a head what is sent to the next stage. The hidden state is named to the end of the forward function."""
        if self.plan.architecture.network:
            return plain_network.loss(self.machine, self.plan.architecture.network, x)
        if not self.stage.heads:
            return x, None
        loss = loss_of(self.machine, with_further_losses(self.machine, x))
        if not self.plan.keep_logits:
            self.drop_outputs()
        return loss

    # ---- other models of the training method
    def _beside(self, companion: Companion, stage: Stage, *, each: bool) -> ForwardPass:
        """Another model, walked on the same meter."""
        return ForwardPass(companion.plan, stage, self.meter, each=each, rootless=companion.shares_weights)

    def drop_outputs(self) -> None:
        """What the model's output names beside loss and logits goes."""
        for tensor in self.outputs:
            tensor.storage.drop()
        self.outputs = []

    def drop_copies(self) -> None:
        """Autocast lets its weight copies go; those of the layers that were not walked are as many times as large."""
        machine = self.machine
        for layer, copy in machine.copies.values():
            storage = copy.storage
            if storage.holders == 1 and layer != ENDS:
                more = machine.tape.times[layer[0]] - 1
                self.meter.sub(more * storage.nbytes, more * storage.block, storage.category, storage.number, storage.stream)
            storage.drop()
        machine.copies = {}

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
