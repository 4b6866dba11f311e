"""A byte-counting model of reverse-mode automatic differentiation.

Nothing is computed: a tensor is a number of bytes with reference counts, a kernel is a row of `kernel_table.py`, and running a
model forward and backward leaves the live bytes after every allocation. Four rules of PyTorch decide everything that is not
in a kernel's row:

1. A node keeps what its gradient formulas read, and only for inputs that need a gradient
   (pytorch tools/autograd/gen_variable_type.py: saved variables are guarded by `should_compute_output`).
2. Nodes run in reverse order of creation (torch/csrc/autograd/engine.cpp: ready queue by sequence number). Gradients into the
   same tensor are added: in place when nobody else holds the first one (input_buffer.cpp: can_accumulate_inplace), out of
   place under a TorchDispatchMode. Of a weight with several uses the first sum is a new tensor (the gradients of products are
   transposed views), which takes the later ones.
3. After a node has run, its incoming gradients go first, then what it had saved (engine.cpp: `release_variables`).
4. A parameter takes its first gradient over without a copy, and adds later ones in place (accumulate_grad.h).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from peakgate.memory.kernels import NO_FORMULA, Bytes, Formula, Kernel, Size, Step
from peakgate.memory.meter import Meter
from peakgate.memory.selective import Operations
from peakgate.memory.storage import Storage

FLOAT32, INT64 = 4, 8
Shape = tuple[int, int, int]
"""(rows, width, bytes of an element)."""


@dataclass(slots=True, eq=False)
class Parameter:
    """A weight of `elements`; its bytes are counted by the caller, its gradient by the tape.

    `resident`: the gradient has a buffer of its own that is counted by the caller (Megatron's main gradients, the textbook).
    """

    name: str
    elements: int
    itemsize: int
    trainable: bool
    resident: bool = False
    shape: tuple[int, int] | None = None
    """(outputs, inputs) of a matrix that products use."""
    grad: Storage | None = None
    uses: int = 0
    pending: Storage | None = None
    summed: bool = False
    """`pending` is a sum of its own, which the next gradient is added to in place."""

    @property
    def nbytes(self) -> int:
        """Bytes of the weight in the format of the walk."""
        return self.elements * self.itemsize


@dataclass(slots=True, eq=False)
class Tensor:
    """`rows` x `width` elements on a storage, and where its gradient goes."""

    storage: Storage
    rows: int
    width: int
    itemsize: int
    node: Node | None = None
    output: str = "y"
    transposed: bool = False
    """Heads before sequence over a (batch, sequence, head, dim) allocation: a batched matmul copies it."""

    @property
    def nbytes(self) -> int:
        """Bytes of its elements; its storage may be larger."""
        return self.rows * self.width * self.itemsize


Operand = Tensor | Parameter


@dataclass(slots=True, eq=False)
class Node:
    """One recorded kernel: the formula that will run, what it reads, and the gradients that have arrived."""

    formula: Formula
    operands: dict[str, Operand]
    layer: Layer
    saved: dict[str, Storage] = field(default_factory=dict)
    grads: dict[str, Storage] = field(default_factory=dict)
    reads: bool = False
    before: Callable[[], None] | None = None
    """A checkpointed segment rebuilds itself on the first read …"""
    after: Callable[[], None] | None = None
    """… and lets go of its input after the last."""
    run: Callable[[Node], None] | None = None
    """Of a node that is no kernel: a whole reentrant segment, a leaf."""


Layer = tuple[int, int]
"""(stretch of equal layers, place in its pattern)."""


class RecomputedError(Exception):
    """The last tensor that the backward pass needs has been rebuilt: stop here (torch.utils.checkpoint, early stop)."""


def wants_gradient(operand: Operand) -> bool:
    """Whether a gradient flows into it."""
    return operand.trainable if isinstance(operand, Parameter) else operand.node is not None


def _active(kernel: Kernel, operands: Mapping[str, Operand]) -> tuple[int, ...]:
    """The places of the rules of which somebody wants a gradient."""
    wanted = {name for name, operand in operands.items() if wants_gradient(operand)}
    return tuple([i for i, rule in enumerate(kernel.rules) if not wanted.isdisjoint(rule.targets)]) if wanted else ()


class Tape:
    """Records kernels and plays them backward. `dims` are the sizes that kernel rows name."""

    def __init__(self, meter: Meter, dims: Mapping[str, int], *, sums_in_place: bool = True, create_graph: bool = False) -> None:
        self.meter, self.dims, self.sums_in_place = meter, dims, sums_in_place
        self.create_graph = create_graph  # the first backward pass is itself recorded: it frees nothing that it read
        self.nodes: list[Node] = []
        self.recording = True
        self.scratch = False  # a recomputation: its nodes are thrown away
        self.packing = True  # False inside a checkpointed segment: nothing is kept
        self.stop_after: int | None = None
        self.pool = ""  # of a CUDA graph, while it is captured
        self.layer: Layer = (0, 0)
        self.times: dict[int, int] = {0: 1}
        self.operations = Operations()
        self.pool_of: Callable[[Layer], str] = lambda _: ""
        self.before_layer: Callable[[Layer], None] = lambda _: None
        self.after_layer: Callable[[Layer], None] = lambda _: None

    # ---- forward
    def allocate(self, nbytes: int, category: str = "temporaries", stream: str = "") -> Storage:
        """A new allocation, held once; `stream`: the CUDA stream that makes it, where it is not the model's own."""
        return Storage(nbytes, category, self.meter, stream or self.pool)

    def size(self, size: Size, operands: Mapping[str, Operand | Bytes]) -> int:
        """Bytes of a step of a kernel's row."""
        base = operands.get(size.name)
        if base is None:
            elements, own = (operands["x"].rows if size.name == "rows" else self.dims[size.name]), 1  # type: ignore[union-attr]  # x is no plain size
        else:
            elements, own = base.elements if isinstance(base, Parameter) else base.rows * base.width, base.itemsize
        itemsize = own if size.itemsize is None else self.dims[size.itemsize] if isinstance(size.itemsize, str) else size.itemsize
        return elements * itemsize * (self.dims[size.times] if size.times else 1) // size.over

    def apply(self, kernel: Kernel, operands: dict[str, Operand], shapes: dict[str, Shape], category: str) -> dict[str, Tensor]:
        """Runs a kernel forward; `shapes` names its outputs. Raises RecomputedError where a recomputation may stop."""
        active = _active(kernel, operands) if self.recording else ()
        node = Node(kernel.formula(active), operands, self.layer) if active else None
        if node is not None:
            self._save(node, operands, inputs=True)
        made, own = self._execute(kernel, node, operands, shapes, category)
        if node is not None:
            self._save(node, made, inputs=False)
            self._record(node)
        for storage in own:
            storage.drop()
        if node is not None and self.stop_after == len(self.nodes) - 1:
            for name in shapes:
                made[name].storage.drop()
            raise RecomputedError
        return {name: made[name] for name in shapes}

    def _execute(
        self, kernel: Kernel, node: Node | None, operands: dict[str, Operand], shapes: dict[str, Shape], category: str
    ) -> tuple[dict[str, Tensor], list[Storage]]:
        """Allocates outputs and by-products; the second list holds what only the kernel itself names."""
        sizes: dict[str, Operand | Bytes] = {**operands, "out": Bytes(*next(iter(shapes.values())))}
        made: dict[str, Tensor] = {}
        own: dict[str, Storage] = {}
        kept = self.operations.begin(kernel.name)
        for step in kernel.forward:
            if step.free:
                own.pop(step.name).drop()
                continue
            base = operands.get(step.size.name)
            view = step.alias and isinstance(base, Tensor)
            stays = step.name in shapes or step.kept
            known = kept.take() if stays and not view else None
            storage = base.storage.hold() if view else known or self.allocate(self.size(step.size, sizes), category)  # type: ignore[union-attr]  # a view is of a tensor
            if stays:
                kept.keep(storage)
            if step.name in shapes:
                integers = shapes[step.name][2] >= INT64  # they carry no gradient
                made[step.name] = Tensor(storage, *shapes[step.name], None if integers else node, step.name)
            else:
                own[step.name] = storage
                if step.kept:
                    made[step.name] = Tensor(storage, storage.nbytes, 1, 1)
        return made, list(own.values())

    def _record(self, node: Node) -> None:
        self.nodes.append(node)
        if self.scratch:
            return
        for target in node.formula.targets:
            owner = node.operands.get(target)
            if isinstance(owner, Parameter) and owner.trainable:
                owner.uses += 1

    def _save(self, node: Node, candidates: Mapping[str, Operand], *, inputs: bool) -> None:
        """Keeps what the node's rules read: first among its operands, then among what it made."""
        reads = node.formula.reads
        node.reads = bool(reads)
        if not self.packing:
            return
        for name in reads:
            tensor = candidates.get(name)
            if isinstance(tensor, Tensor):
                tensor.storage.become("activations")
                node.saved[name] = tensor.storage.hold()
        if inputs and self.stop_after == len(self.nodes) and all(name in candidates for name in reads):
            self.nodes.append(node)  # all it keeps are inputs: the kernel itself need not run any more
            raise RecomputedError

    def discard(self, storages: list[Storage]) -> None:
        """Empties tensors that are computed again when the backward pass first reads what was made up to now.

        Megatron-LM core/tensor_parallel/random.py: CheckpointWithoutOutput.
        """
        reading = next((node for node in reversed(self.nodes) if node.reads), None)
        if reading is None or not self.recording or not self.packing:
            return
        for storage in storages:
            storage.empty()

        def refill() -> None:
            for storage in storages:
                storage.refill()

        reading.before = refill

    def hook(self, x: Tensor, run: Callable[[], None]) -> Tensor:
        """`run` is called when the gradient of `x` has come, before the node that made it runs (torch.Tensor.register_hook)."""
        if x.node is None or not self.recording:
            return x
        node = Node(NO_FORMULA, {"x": x}, self.layer, run=lambda node: self._hooked(node, run))
        self.nodes.append(node)
        return replace(x, node=node, output="y")

    def _hooked(self, node: Node, run: Callable[[], None]) -> None:
        grad = node.grads.pop("y")
        run()
        self.deliver(node.operands["x"], grad)

    # ---- backward
    def backward(self, nodes: list[Node]) -> None:
        """Plays nodes in reverse, one stretch of equal layers for all its repetitions."""
        position = len(nodes)
        while position:
            stretch = nodes[position - 1].layer[0]
            ends = "loss and head" if position == len(nodes) else "embedding"
            with self.meter.repeated(self.times[stretch], "layer" if stretch else ends):
                while position and nodes[position - 1].layer[0] == stretch:
                    layer = nodes[position - 1].layer
                    self.enter(layer)
                    while position and nodes[position - 1].layer == layer:
                        position -= 1
                        self.play(nodes[position])
                    self.leave(layer)

    def enter(self, layer: Layer) -> None:
        """The backward pass begins a layer."""
        self.pool = self.pool_of(layer)
        self.before_layer(layer)

    def leave(self, layer: Layer) -> None:
        """The backward pass is done with a layer."""
        self.pool = self.pool_of((0, 0))
        self.after_layer(layer)

    def play(self, node: Node) -> None:
        """Runs a node backward if a gradient has reached it."""
        if node.grads:
            (node.run or self._run)(node)

    def _run(self, node: Node) -> None:
        if node.before is not None and node.reads:
            node.before()
        results, rest = self._gradients(node)
        for storage in rest if self.create_graph else [*rest, *node.grads.values(), *node.saved.values()]:
            storage.drop()
        node.grads, node.saved = {}, {}
        if node.after is not None:
            node.after()
        for target, storage in results.items():
            self.deliver(node.operands[target], storage)

    def _gradients(self, node: Node) -> tuple[dict[str, Storage], list[Storage]]:
        """Runs the rules: the gradients by target, and what else is still allocated."""
        sizes: dict[str, Operand | Bytes] = dict(node.operands)
        for name, storage in node.grads.items():
            sizes["g" + name] = Bytes(storage.nbytes, 1, 1)
        env: dict[str, Storage] = {}
        self._take(node.formula.steps, node, env, sizes)
        late = node.formula.late
        if late and node.before is not None:  # only the formula itself held what a checkpoint has rebuilt
            for storage in node.saved.values():
                storage.drop()
            node.saved = {}
        self._take(late, node, env, sizes)
        results = {name[1:]: storage for name, storage in env.items() if name[0] == "g" and name[1:] in node.operands}
        return results, [storage for name, storage in env.items() if name[1:] not in results]

    def _take(self, steps: tuple[Step, ...], node: Node, env: dict[str, Storage], sizes: Mapping[str, Operand | Bytes]) -> None:
        for step in steps:
            if step.free:
                env.pop(step.name).drop()
            elif not self._skipped(step, node):
                env[step.name] = self._made(step, node) if step.alias else self.allocate(self.size(step.size, sizes))

    @staticmethod
    def _skipped(step: Step, node: Node) -> bool:
        """A gradient that nobody asked for."""
        target = node.operands.get(step.name[1:]) if step.name[0] == "g" else None
        return target is not None and not wants_gradient(target)

    @staticmethod
    def _made(step: Step, node: Node) -> Storage:
        """An incoming gradient, or a gradient that the forward pass already made and kept."""
        return (node.saved[step.size.name] if step.size.name in node.saved else node.grads[step.size.name[1:]]).hold()

    def deliver(self, target: Operand, grad: Storage) -> None:
        """Hands a gradient to a weight or to the node that made a tensor."""
        if isinstance(target, Parameter):
            self._accumulate(target, grad)
        elif target.node is None:
            grad.drop()
        else:
            grads = target.node.grads
            grads[target.output] = self._sum(grads.get(target.output), grad, in_place=self.sums_in_place)

    def _sum(self, old: Storage | None, new: Storage, *, in_place: bool) -> Storage:
        if old is None:
            return new
        if in_place and old.holders == 1:
            new.drop()
            return old
        total = self.allocate(max(old.nbytes, new.nbytes))
        old.drop()
        new.drop()
        return total

    def _accumulate(self, parameter: Parameter, grad: Storage) -> None:
        parameter.uses -= 1
        total = self._sum(parameter.pending, grad, in_place=parameter.summed)
        parameter.summed, parameter.pending = parameter.pending is not None, None
        if parameter.uses > 0:
            parameter.pending = total
        elif parameter.grad is None and not parameter.resident:
            total.become("gradients")
            parameter.grad = total
        else:
            total.drop()
