"""The forward pass of one stage, walked allocation by allocation: embedding, layers, head and loss."""

from __future__ import annotations

from functools import partial

from peakgate.memory.census import Census
from peakgate.memory.checkpoint import Segment, rebuilt, rebuilt_core
from peakgate.memory.collectives import sharding_of
from peakgate.memory.compiled import compiled_layer
from peakgate.memory.cuda_graphs import pool_of
from peakgate.memory.dora import dora
from peakgate.memory.embedding import embedded, global_sizes, mask_width, received_tables
from peakgate.memory.loss import loss_of
from peakgate.memory.machine import ENDS, Machine
from peakgate.memory.meter import Meter
from peakgate.memory.multi_token import with_further_losses
from peakgate.memory.pipeline import Stage
from peakgate.memory.plain import run as plain_network
from peakgate.memory.plan import Plan
from peakgate.memory.roles import REBUILT
from peakgate.memory.shared_tensors import held_by
from peakgate.memory.stacks import Stack, stacks_of
from peakgate.memory.stretches import Stretch
from peakgate.memory.tape import Tensor


class ForwardPass:
    """The state of a pass while it is walked. `census`: what the rank holds, where it is sharded; without one nothing is."""

    def __init__(self, plan: Plan, stage: Stage, meter: Meter, *, each: bool, census: Census | None = None) -> None:
        self.plan, self.stage, self.meter = plan, stage, meter
        self.machine = Machine(plan, meter)
        again = {block for roles in self.machine.kinds.values() for block in roles.values() if block.startswith(REBUILT)}
        self.machine.special = {block: partial(rebuilt, name=block.removeprefix(REBUILT)) for block in again}
        self.machine.special |= {"rebuilt_core": rebuilt_core, "compiled_layer": compiled_layer, "dora": dora}
        self.stacks = stacks_of(plan, stage, each=each)
        stretches = [stretch for stack in self.stacks for stretch in stack.stretches]
        self.machine.frozen_stretches = frozenset(stretch.number for stretch in stretches if stretch.frozen)
        last = (stretches[-1].number, len(stretches[-1].kinds) - 1) if stretches else ENDS
        self.sharding = sharding_of(self.machine, census, last)
        self.machine.model_output = self.sharding.after_model
        self.saved_per_layer: dict[str, int] = {}
        self.outputs: list[Tensor] = []  # what the model's output names beside loss and logits
        self.machine.tape.pool_of = pool_of(plan)
        self.machine.tape.pool = self.machine.tape.pool_of(ENDS)

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
