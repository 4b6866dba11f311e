"""Activation checkpointing of a run of layers, or of an attention core (torch/utils/checkpoint.py)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from peakgate.memory.kernels import NO_FORMULA
from peakgate.memory.library import BLOCKS
from peakgate.memory.profiles import profile_of
from peakgate.memory.selective import Cache
from peakgate.memory.storage import Storage
from peakgate.memory.tape import Layer, Node, RecomputedError, Tensor

if TYPE_CHECKING:
    from peakgate.memory.machine import Machine

NO_LAYER = -1
"""The place of a reentrant stretch's one node: it spans layers, which it enters and leaves itself."""

Run = Callable[[list[Tensor]], Tensor]
"""Runs the segment's modules on its inputs."""


class Segment:
    """A stretch of the forward pass that is run again when its backward pass begins.

    Without reentrance its nodes stay and get their tensors back from a second run; with it the whole stretch is one node that
    runs an inner forward and backward pass, while its output and the incoming gradient stay.
    """

    def __init__(self, machine: Machine, run: Run, inputs: list[Tensor], layer: Layer) -> None:
        self.machine, self.run, self.layer, self.held = machine, run, layer, inputs
        self.globals = dict(machine.globals)
        self.nodes: list[Node] = []
        self.done = False
        self.offloads = machine.plan.offload_activations and not machine.plan.reentrant
        selective = machine.plan.checkpointing == "selective" and profile_of(machine.plan.profile).per_operation
        self.cache: Cache | None = [] if selective else None
        for tensor in self.held:
            tensor.storage.hold()
            tensor.storage.become("activations")

    def nonreentrant(self) -> Tensor:
        """Runs forward and keeps only the inputs."""
        tape = self.machine.tape
        first, tape.packing = len(tape.nodes), False
        tape.operations.start(keeping=self.cache)
        y = self.run(self.held)
        tape.operations.start()
        tape.packing = True
        self.nodes = tape.nodes[first:]
        reading = [node for node in self.nodes if node.reads]
        for node in reading:
            node.before = self._rebuild
        if reading:
            reading[0].after = self._release
        else:  # no gradient flows through it: nothing is ever rebuilt
            self._release()
        if self.offloads and reading:
            self._to_host()
        return y

    def _to_host(self) -> None:
        """The checkpoint leaves for the host; a copy comes back when the stretch is rebuilt (torchtune _activation_offloading.py)."""
        x = self.held[0]
        x.storage.drop()
        self.held[0] = replace(x, storage=Storage(0, "activations", self.machine.meter))

    def _from_host(self) -> None:
        empty = self.held[0]
        self.held[0] = replace(empty, storage=self.machine.tape.allocate(empty.nbytes, "activations"))
        empty.storage.drop()

    def reentrant(self) -> Tensor:
        """Runs forward without a graph."""
        tape, x = self.machine.tape, self.held[0]
        tape.recording = False
        y = self.run(self.held)
        tape.recording = True
        if x.node is None:
            return y
        node = Node(NO_FORMULA, {"x": x}, (self.layer[0], NO_LAYER), run=self._play)
        tape.nodes.append(node)
        return replace(y, node=node, output="y")

    def _release(self) -> None:
        for tensor in self.held:
            tensor.storage.drop()
        for storage in (each for kept in self.cache or () for each in kept):  # what an early stop never asked for
            storage.drop()

    def _rebuild(self) -> None:
        """Runs the stretch again up to the last tensor that its backward pass reads."""
        if self.done:
            return
        self.done = True
        if self.offloads:
            self._from_host()
        rebuilt: list[Node] = []
        copy = self._copied_input()
        last = max(i for i, node in enumerate(self.nodes) if node.reads)
        self._again(self.held, rebuilt, last)
        for node, twin in zip(self.nodes, rebuilt, strict=False):
            node.saved = twin.saved
        if copy is not None:
            self.nodes[0].saved["copy"] = copy

    def _copied_input(self) -> Storage | None:
        """Seed A counts the input of a rebuilt layer beside its checkpoint."""
        profile = profile_of(self.machine.plan.profile)
        if not profile.copies_rebuilt_input or self.machine.plan.checkpointing != "full":
            return None
        return self.machine.tape.allocate(self.held[0].nbytes, "activations")

    def _again(self, inputs: list[Tensor], nodes: list[Node], stop_after: int | None) -> Tensor | None:
        tape, machine = self.machine.tape, self.machine
        before = tape.nodes, tape.stop_after, tape.packing, tape.scratch, tape.recording, machine.globals
        tape.nodes, tape.stop_after, tape.packing, tape.recording, machine.globals = nodes, stop_after, True, True, self.globals
        tape.scratch = stop_after is not None
        machine.caching = False
        tape.operations.start(taking=self.cache)
        try:
            return self.run(inputs)
        except RecomputedError:
            return None
        finally:
            tape.operations.start()
            tape.nodes, tape.stop_after, tape.packing, tape.scratch, tape.recording, machine.globals = before

    def _play(self, node: Node) -> None:
        """The backward pass of a reentrant stretch: an inner forward and backward pass."""
        tape = self.machine.tape
        grad = node.grads.pop("y")
        tape.enter(self.layer)
        leaf = Node(NO_FORMULA, {}, self.layer, run=lambda _: None)
        inputs = [replace(self.held[0], node=leaf, output="y"), *self.held[1:]]
        inner: list[Node] = []
        y = self._again(inputs, inner, None)
        if y is None or y.node is None:
            raise AssertionError("a reentrant segment runs to its end")
        y.node.grads["y"] = grad.hold()
        layer = self.layer
        for each in reversed(inner):
            if each.layer != layer:
                tape.leave(layer)
                layer = each.layer
                tape.enter(layer)
            tape.play(each)
        y.storage.drop()
        grad.drop()
        self._release()
        tape.deliver(node.operands["x"], leaf.grads.pop("y"))
        tape.leave(layer)


def rebuilt_core(machine: Machine, args: list[Tensor]) -> Tensor:
    """The attention core as a segment of its own: selective recomputation (Korthikanti et al. 2022, section 5)."""
    return rebuilt(machine, args, machine.roles["core_inside"])


def rebuilt(machine: Machine, args: list[Tensor], name: str) -> Tensor:
    """A block as a segment of its own: run again, it finds the same layer's weights."""
    block, layer, kind = BLOCKS[name], machine.layer, machine.kind
    cursor = machine.cursor.get(layer, 0)

    def run(held: list[Tensor]) -> Tensor:
        before, of = machine.layer, machine.kind
        machine.layer, machine.cursor[layer] = layer, cursor
        machine.enter(kind)
        try:
            return machine.block(block, held[: len(args)], None)
        finally:
            machine.layer = before
            machine.enter(of)

    return Segment(machine, run, [*args, *machine.globals.values()], machine.layer).nonreentrant()
