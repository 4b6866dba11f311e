"""One training step of one rank, walked allocation by allocation: forward, loss, backward, optimizer."""

from __future__ import annotations

from dataclasses import dataclass, replace

from peakgate.memory.allocator import block_bytes
from peakgate.memory.census import Census
from peakgate.memory.checkpoint import Segment, rebuilt_core
from peakgate.memory.library import BLOCKS
from peakgate.memory.loss import loss_of
from peakgate.memory.machine import ENDS, Machine
from peakgate.memory.meter import Event, High, Meter, Point
from peakgate.memory.pipeline import Stage
from peakgate.memory.plan import Plan
from peakgate.memory.profiles import profile_of
from peakgate.memory.sharding import SHARDED, Sharding
from peakgate.memory.states import States, Weight, states_of, step_temporary_bytes, weights_of
from peakgate.memory.stretches import Stretch, stretches
from peakgate.memory.tape import Storage, Tensor


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


def walk(plan: Plan, stage: Stage, *, record: bool = False) -> Walk:
    """Walks one step in steady state. `record` keeps every allocation and free, walking each layer."""
    profile = profile_of(plan.profile)
    rounds = block_bytes if profile.rounds else _exact
    meter = Meter(rounds, profile.ignored, [] if record and profile.holds_graph else None)
    step = _Step(plan, stage, meter, each=record)
    step.micro_step(held=None)
    if plan.accumulation > 1 or not plan.set_to_none or profile.holds_graph:  # the second pass finds gradients, as all later ones
        meter.forget()
        if not profile.holds_graph:
            meter.events = [] if record else None
        step.micro_step(held=step.held)
    elif record:
        meter = Meter(rounds, profile.ignored, [])
        step = _Step(plan, stage, meter, each=True)
        step.micro_step(held=None)
    weights = weights_of(step.machine.parameters, step.machine.tape.times)
    states = states_of(plan, weights)
    step.optimize(states)
    return Walk(
        highs=meter.highs,
        states=states,
        weights=weights,
        held_per_micro_batch=sum(step.held.values()),
        points=tuple(meter.points),
        input_bytes=16 * step.machine.dims["T"] + plan.architecture.buffer_bytes if profile.tables else 0,
        events=tuple(meter.events or ()),
    )


def saved_bytes_per_layer(plan: Plan) -> int:
    """What autograd keeps for one layer before checkpointing: the mean over the repeating pattern."""
    plain = replace(plan, checkpointing="none", degrees=replace(plan.degrees, sharding="none", pipeline=1), keep_logits=False)
    pattern = len(plain.architecture.pattern)
    stage = Stage(
        number=0, layers=min(2, max(1, plain.architecture.dims["L"] // pattern)) * pattern, embeds=True, heads=False, in_flight=1, chunks=1
    )
    profile = profile_of(plan.profile)
    step = _Step(plain, stage, Meter(_exact, profile.ignored), each=False)
    step.machine.tape.nodes = []
    step.sharding.begin()
    step.forward_layers()
    return step.saved_per_layer


def census(plan: Plan, stage: Stage) -> Census:
    """Counts the weights of a stage by running it forward without a graph."""
    step = _Step(replace(plan, checkpointing="none", loss="full"), stage, Meter(_exact), each=False, counting=True)
    machine = step.machine
    machine.tape.recording = False
    step.head_and_loss(step.forward_layers())
    weights = weights_of(machine.parameters, machine.tape.times)
    return Census(
        layers={kind: sum(p.elements for p in machine.parameters[layer]) for layer, kind in step.sharding.layer_kind.items()},
        ends=sum(p.elements for p in machine.parameters.get(ENDS, [])),
        total=sum(w.elements * w.count for w in weights),
        trainable=sum(w.elements * w.count for w in weights if w.trainable),
    )


def _exact(nbytes: int) -> int:
    return nbytes


class _Step:
    """The state of a step while it is walked."""

    def __init__(self, plan: Plan, stage: Stage, meter: Meter, *, each: bool, counting: bool = False) -> None:
        self.plan, self.stage, self.meter = plan, stage, meter
        self.machine = Machine(plan, meter)
        self.machine.special["rebuilt_core"] = rebuilt_core
        self.sharding = Sharding(self.machine, None if counting or plan.degrees.sharding not in SHARDED else census(plan, stage))
        self.stretches = stretches(plan, stage.layers, each=each)
        self.held: dict[str, int] = {}
        self.saved_per_layer = 0
        tape = self.machine.tape
        tape.before_layer, tape.after_layer = self.sharding.before_backward, self.sharding.after_backward

    # ---- one micro-batch
    def micro_step(self, held: dict[str, int] | None) -> None:
        """Forward, loss and backward of one micro-batch; `held`: what each other micro-batch in flight keeps."""
        meter, tape, machine = self.meter, self.machine.tape, self.machine
        tape.nodes, machine.cursor, machine.caching = [], {}, True
        in_flight = {key: size * (self.stage.in_flight - 1) // self.stage.chunks for key, size in (held or {}).items()}
        for key, size in in_flight.items():
            meter.add(size, size, key)
        meter.enter("forward")
        self.sharding.begin()
        before = dict(meter.by)
        x = self.forward_layers()
        loss, logits = self.head_and_loss(x)
        self._drop_copies()
        self.held = {key: max(0, meter.by[key] - before[key]) for key in ("activations",)}
        meter.enter("backward")
        meter.mark("start of backward")
        self.sharding.begin_backward()
        self._backward(loss)
        self.sharding.end()
        meter.mark("end of backward")
        meter.enter("optimizer")
        leaves = [storage for node, leaf in machine.leaves for storage in (leaf, *node.grads.values())]
        for storage in [loss.storage, *leaves, *([logits.storage] if logits and self.plan.keep_logits else [])]:
            storage.drop()
        for key, size in in_flight.items():
            meter.sub(size, size, key, 0)
        machine.leaves = []
        machine.pins.step_ended(named=machine.profile.holds_graph)

    def _backward(self, loss: Tensor) -> None:
        tape = self.machine.tape
        if loss.node is None:
            return
        loss.node.grads[loss.output] = tape.allocate(loss.nbytes if not self.stage.heads else 4)
        tape.backward(tape.nodes)

    # ---- forward
    def forward_layers(self) -> Tensor:
        """Embedding and layers: the hidden state behind the last layer of the stage."""
        machine, tape = self.machine, self.machine.tape
        tape.layer, tape.times[0] = ENDS, 1
        x = self._first_hidden()
        for name, size in global_sizes(machine).items():
            machine.globals[name] = Tensor(tape.allocate(size, "activations"), self.plan.micro_batch if name == "mask" else 1, size, 1)
        self.meter.mark("embedding")
        for stretch in self.stretches:
            x = self._stretch(stretch, x)
        tape.layer = ENDS
        y = x
        if self.stage.heads:
            (y,) = machine.call("final", "final", [x], None)
            x.storage.drop()
        for tensor in [*machine.globals.values(), *machine.model_locals]:
            tensor.storage.drop()
        machine.globals, machine.model_locals = {}, []
        return y

    def _first_hidden(self) -> Tensor:
        """The embedded tokens, or what the stage before has sent."""
        machine, tape = self.machine, self.machine.tape
        dims = machine.dims
        if not self.stage.embeds:
            received = Tensor(tape.allocate(dims["Ts"] * dims["h"] * dims["act"]), dims["Ts"], dims["h"], dims["act"])
            x = machine.leaf(received)
            received.storage.drop()
            return x
        ids = Tensor(Storage(0, "temporaries", self.meter), dims["T"], 1, 8)  # the batch is part of the start
        rows = dims["T"] if "positions_per_token" in machine.arch.flags else self.plan.sequence
        counted = profile_of(self.plan.profile).tables
        machine.globals["positions"] = Tensor(tape.allocate(8 * rows if counted else 0), rows, 1, 8)
        return machine.block(BLOCKS[machine.roles["embed"]], [ids], dims["h"], locals_stay=True)

    def _stretch(self, stretch: Stretch, x: Tensor) -> Tensor:
        tape = self.machine.tape
        tape.times[stretch.number] = stretch.times
        before = self.meter.live
        with self.meter.repeated(stretch.times, "layer"):
            for at in range(0, len(stretch.kinds), stretch.every or 1):
                layers = [((stretch.number, i), stretch.kinds[i]) for i in range(at, min(at + (stretch.every or 1), len(stretch.kinds)))]
                for layer, kind in layers:
                    self.sharding.before_forward(layer, kind)
                y = self._run(layers, x, checkpointed=stretch.every > 0)
                for _ in layers:
                    self.sharding.after_forward()
                x.storage.drop()
                x = y
        if stretch.number <= 2:
            self.saved_per_layer = (self.meter.live - before) // (stretch.times * len(stretch.kinds)) - self._only_cached(stretch)
        return x

    def _only_cached(self, stretch: Stretch) -> int:
        """Bytes a layer of weight copies that autocast's cache holds and autograd does not: those of biases."""
        copies = [copy for layer, copy in self.machine.copies.values() if layer[0] == stretch.number and copy.storage.holders == 1]
        return sum(copy.nbytes for copy in copies) // len(stretch.kinds)

    def _run(self, layers: list[tuple[tuple[int, int], str]], x: Tensor, *, checkpointed: bool) -> Tensor:
        machine = self.machine

        def run(held: list[Tensor]) -> Tensor:
            hidden = held[0]
            for i, (layer, kind) in enumerate(layers):
                y = machine.run_layer(layer, kind, hidden)
                if i:
                    hidden.storage.drop()
                hidden = y
            return hidden

        if not checkpointed:
            return run([x])
        segment = Segment(machine, run, [x, *machine.globals.values()], layers[-1][0])
        return segment.reentrant() if self.plan.reentrant else segment.nonreentrant()

    def head_and_loss(self, x: Tensor) -> tuple[Tensor, Tensor | None]:
        """(loss, logits); without a head what is sent to the next stage. The hidden state is named to the end of the forward function."""
        if not self.stage.heads:
            return x, None
        return loss_of(self.machine, x)

    def _drop_copies(self) -> None:
        """Autocast lets its weight copies go; those of the layers that were not walked are as many times as large."""
        machine = self.machine
        for layer, copy in machine.copies.values():
            storage = copy.storage
            if storage.holders == 1 and layer != ENDS:
                more = machine.tape.times[layer[0]] - 1
                self.meter.sub(more * storage.nbytes, more * storage.block, storage.category, storage.number)
            storage.drop()
        machine.copies = {}

    # ---- optimizer
    def optimize(self, states: States) -> None:
        """The temporaries of the optimizer's step, on top of all gradients."""
        if profile_of(self.plan.profile).optimizer_temporaries and not self.plan.offload_optimizer:
            self._temporary(step_temporary_bytes(self.plan, states))
        self.meter.mark_high("optimizer step")
        self.meter.enter("end")

    def _temporary(self, nbytes: int) -> None:
        number = self.meter.add(nbytes, nbytes, "temporaries")
        self.meter.sub(nbytes, nbytes, "temporaries", number)


def global_sizes(machine: Machine) -> dict[str, int]:
    """Bytes of what is made once per forward pass and shared by the layers: the additive mask of eager attention, the rope tables."""
    dims, plan, arch = machine.dims, machine.plan, machine.arch
    if not profile_of(plan.profile).tables:
        return {}
    out: dict[str, int] = {}
    square = plan.sequence * plan.sequence
    if plan.attention == "eager":
        out["mask"] = plan.micro_batch * square * dims["act"] * dims.get("masks", 1)
    elif any(roles["core"].startswith("core_efficient") and roles["core"] != "core_efficient_plain" for roles in machine.kinds.values()):
        out["mask"] = square * (plan.micro_batch if plan.builds_mask else 1)  # boolean; one a sequence where packing is looked for
    out["cos"] = 2 * plan.sequence * arch.dims["rope"] * dims["act"]
    return out
