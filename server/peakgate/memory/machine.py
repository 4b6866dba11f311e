"""Runs blocks on a tape: names, weights, number formats, and what tensor parallelism divides."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from peakgate.memory.blocks import Block, Line
from peakgate.memory.dtypes import QUANTISED
from peakgate.memory.frozen import is_frozen
from peakgate.memory.kernels import NO_FORMULA, Step
from peakgate.memory.library import BLOCKS, KERNELS
from peakgate.memory.meter import Meter
from peakgate.memory.pins import Pins
from peakgate.memory.plan import Plan
from peakgate.memory.profiles import profile_of
from peakgate.memory.roles import promoted, roles_of, transposed
from peakgate.memory.shared_tensors import of_kind
from peakgate.memory.stacks import sizes_of
from peakgate.memory.storage import Storage
from peakgate.memory.tape import FLOAT32, INT64, Layer, Node, Operand, Parameter, RecomputedError, Shape, Tape, Tensor

COLUMN = frozenset({"q", "k", "v", "qkv", "gate", "up", "gate_up", "head", "q_b", "kv_b", "kv"})
"""Linear layers that tensor parallelism splits by output (Megatron-LM: ColumnParallelLinear)."""

ROW = frozenset({"o", "down"})
"""Linear layers that it splits by input (RowParallelLinear)."""

JOINED = {"qkv": "q", "gate_up": "gate"}
"""A joined matrix has a bias where its parts have one."""
ADAPTERS = frozenset({"linear_adapter", "conv1d", "magnitude"})
"""Products with a weight that adapters bring: lora_A and lora_B; one lora_B for each part of a joined matrix (LitGPT lora.py, conv1d)."""

PARTS = {"split_qkv": ("q", "kv", "kv")}
"""Kernels whose outputs are parts of unequal width."""
ONE_A_HEAD = frozenset({"join_sinks", "flash_sinks"})
"""Operations with a weight of one number a query head (transformers models/gpt_oss/modeling_gpt_oss.py: sinks)."""

EAGER = "core_eager"
"""How attention cores are called whose weights are tensors: modules return them to their layer (transformers models/*/modeling_*.py)."""

HALF = 2
"""Bytes of a 16-bit number."""

ENDS: Layer = (0, 0)
"""The embedding before the layers and the head after them."""


class Machine:
    """Runs the blocks of one rank of a plan on a tape."""

    def __init__(self, plan: Plan, meter: Meter) -> None:
        self.plan, self.meter, self.arch = plan, meter, plan.architecture
        leading = ("dense",) if self.arch.leading else ()
        kinds = dict.fromkeys((*self.arch.encoder, *self.arch.pattern, *leading))
        self.sizes = {kind: sizes_of(plan, kind) for kind in kinds} if self.arch.encoder else dict.fromkeys(kinds, sizes_of(plan, "every"))
        self.dims = self.sizes[self.arch.pattern[-1]]
        self.profile = profile_of(plan.profile)
        self.tape = Tape(meter, self.dims)
        fused = self.profile.linears if plan.fused_weight_gradients else {}
        self.linears = self.profile.linears_of(plan, fused) if self.profile.linears_of and fused else fused
        self.pins = Pins(meter, self.tape.times)
        self.kinds = {kind: roles_of(plan, kind) for kind in kinds}
        self.kind = self.arch.pattern[-1]
        self.roles = self.kinds[self.kind]
        self.globals: dict[str, Tensor] = {}
        self.parameters: dict[Layer, list[Parameter]] = {}
        self.layer = ENDS
        self.cursor: dict[Layer, int] = {}
        self.category = "temporaries"
        self.copies: dict[int, tuple[Layer, Tensor]] = {}
        self.caching = True
        self.model_locals: dict[str, Tensor] = {}  # what the model's own forward still names while the layers run
        self.named_weights: list[Storage] = []  # of attention, which a layer names to its end and only autograd holds anyway
        self.beside: Tensor | None = None  # the other tower's output
        self.tag = ""  # of the special operation that runs
        self.frozen_stretches: frozenset[int] = frozenset()
        self.leaves: list[tuple[Node, Storage]] = []
        self.special: dict[str, Callable[[Machine, list[Tensor]], Tensor]] = {}  # operations that are more than blocks
        self.companions: dict[str, Callable[..., list[Tensor]]] = {}  # forward passes of a method's other models, by role
        self.model_output: Callable[[Tensor], Tensor] = lambda output: output  # what sharding does behind the model's forward pass
        self.casts = {"to_compute": self.dims["act"], "to_adapter": self.dims["adapter"], "to_float32": 4, "to_half": 2}
        self.eight_bits = plan.lora is not None and plan.lora.base_dtype == "int8"
        own = self.profile.gathers_inputs or plan.profile == "textbook"
        self.gathers = plan.degrees.sequence_parallel and plan.degrees.tensor > 1 and not own

    @property
    def single(self) -> bool:
        """Whether heads before the sequence are a view that a batched matmul takes as it is."""
        return self.plan.micro_batch == 1

    # ---- running blocks
    def call(self, operation: str, tag: str, args: list[Tensor], width: int | None, outputs: int = 1) -> list[Tensor]:
        """Runs a role, a block or a kernel; its results are held once for the caller."""
        operation = self._resolve(operation, tag, args)
        if operation == "pass":
            args[0].storage.hold()
            return [args[0]]
        if operation == "leaf":
            return [self.leaf(args[0])]
        if operation in ("autocast_linear", "autocast_linear_adapter", "autocast_conv1d"):
            return [self._autocast_linear(operation.removeprefix("autocast_"), tag, args[0], width or 0)]
        if operation == "like":  # the first in the format of the second
            return self.call("to_float32" if args[1].itemsize == FLOAT32 else "to_half", "", args[:1], None)
        if operation in self.special:
            self.tag = tag
            return [self.special[operation](self, args)]
        if operation in BLOCKS:
            return [self.block(BLOCKS[operation], args, width, tag)]
        return self._kernel(operation, tag, args, width, outputs)

    def _resolve(self, operation: str, tag: str, args: list[Tensor]) -> str:
        for _ in range(2):  # a role may name another role
            operation = self.roles.get(operation, operation)
        if operation == "linear":
            operation = self._adapted(tag) if self.plan.lora and tag in self.plan.lora.targets else "linear_base"
        if self.plan.formats.autocast and operation == "linear_base" and self.dims["weight"] == HALF and args[0].itemsize == HALF:
            return operation  # nothing to cast
        if operation == "linear_base" and self.eight_bits and self._quantised(tag):
            return operation
        if self.plan.formats.autocast and operation == "linear_base":
            return "linear_4bit_autocast" if self._quantised(tag) else "autocast_linear"
        if self.plan.formats.autocast and operation in ADAPTERS:
            return "autocast_" + operation
        if operation == "contiguous_if_transposed":
            return "contiguous" if args[0].transposed and not self.single else "pass"
        if operation == "power_fp32" and args[0].itemsize == FLOAT32:
            return "power"
        return "pass" if self.casts.get(operation) == args[0].itemsize else operation

    def _adapted(self, tag: str) -> str:
        """How an adapted layer runs: peft has a module of its own for 4-bit weights."""
        if self.plan.lora is not None and self.plan.lora.dora:
            return "lora_dora"
        autocast = "_autocast" if self.plan.formats.autocast else ""
        kind = "lora_int8" if self.eight_bits else "lora_quantised"
        name = kind + autocast if self._quantised(tag) else "lora"
        return self.roles.get(name, name)

    def block(self, block: Block, args: list[Tensor], width: int | None, tag: str = "", *, locals_stay: bool = False) -> Tensor:
        """Runs a module's forward function; `locals_stay`: its locals outlive it (the model's own forward)."""
        scope: dict[str, Tensor] = {}
        for name, value in zip(block.inputs, args, strict=True):
            value.storage.hold()
            scope[name] = value
        frame = {"groups": 1} if width is None else {"out": width, "groups": width}
        try:
            for line in block.lines:
                self._line(line, scope, frame, tag)
        except RecomputedError:
            for value in scope.values():
                value.storage.drop()
            raise
        result = scope.pop("return")
        if not self.tape.recording and block.name.startswith(EAGER):
            self.named_weights.append(scope["w"].storage.hold())
        if locals_stay:
            self.model_locals = scope
            return result
        for value in scope.values():
            value.storage.drop()
        return result

    def _line(self, line: Line, scope: dict[str, Tensor], frame: Mapping[str, int], tag: str) -> None:
        if line.operation == "drop":
            for name in line.arguments:
                scope.pop(name).storage.drop()
            return
        if line.operation == "discard":
            if line.tag in self.plan.recomputed:
                self.tape.discard([scope[name].storage for name in line.arguments])
            return
        args = [scope[name] if name in scope else of_kind(self.globals, name, self.kind) for name in line.arguments]
        width = (frame.get(line.width) if line.width in ("out", "groups") else self.dims[line.width]) if line.width else None
        results = self.call(line.operation, line.tag or tag, args, width, len(line.outputs))
        for name in line.dying:
            scope.pop(name).storage.drop()
        for name, value in zip(line.outputs, results, strict=True):
            old = scope.get(name)
            scope[name] = value
            if old is not None:
                old.storage.drop()

    # ---- kernels
    def _kernel(self, operation: str, tag: str, args: list[Tensor], width: int | None, outputs: int) -> list[Tensor]:
        operation = promoted(operation, args)
        kernel = KERNELS[self._variant(operation, tag)]
        operands: dict[str, Operand] = dict(zip(kernel.inputs, args, strict=True))
        steps, rows = kernel.made(outputs), self._rows(operation, tag, args[0])
        parts = iter(PARTS.get(operation, ()))
        shapes: dict[str, Shape] = {}
        for step in steps:
            part = next(parts, None)
            wide = self.dims[part] if part else self._width(step, operands, args[0], width, outputs)
            shapes[step.name] = rows, wide, self._itemsize(step, operands, args)
        for name in kernel.weights:
            operands[name] = self.weight(operation, name, tag, args[0], width)
        made = self.tape.apply(kernel, operands, shapes, self.category)
        for tensor in made.values():
            tensor.transposed = transposed(operation, args[0])
        if self.plan.pins_inputs and operation in ("linear_base", "linear_4bit") and self._quantised(tag):
            self._pin(args[0])
        return [made[step.name] for step in steps]

    def _pin(self, x: Tensor) -> None:
        """What a product with a 4-bit weight was given hangs on its context, where one is kept at all."""
        if x.node is not None and self.tape.recording and not self.tape.scratch:
            self.pins.pin(x.storage, self.tape.layer)

    def _rows(self, operation: str, tag: str, x: Tensor) -> int:
        """Rows of the output: whole behind a column-parallel layer, split along the sequence behind a row-parallel one."""
        if tag and (rows := self.dims.get(f"rows.{tag}")) is not None:
            return rows
        if operation in self.profile.rows:
            return self.dims[self.profile.rows[operation]]
        if operation.startswith("linear") and self.profile.gathers_inputs:
            return x.rows
        if tag == "kv":  # of the encoder's output, whose tokens are others than the decoder's
            return x.rows * (self.dims["tensor"] if self.gathers else 1)
        if operation.startswith(("linear", "logits")):
            return self.dims["T"] if tag in COLUMN and x.rows == self.dims["Ts"] else self.dims["Ts"] if tag in ROW else x.rows
        return self.dims["Ts"] if operation == "embedding" and tag == "V" else x.rows

    def _width(self, step: Step, operands: Mapping[str, Operand], x: Tensor, width: int | None, outputs: int) -> int:
        if step.alias and step.size.times:
            return self.dims[step.size.times]
        if step.alias and outputs > 1:
            return x.width // outputs
        if width is not None and (step.alias or step.size.name == "out"):
            return width
        base = operands.get(step.size.name)
        return base.width if isinstance(base, Tensor) else x.width

    def _itemsize(self, step: Step, operands: Mapping[str, Operand], args: list[Tensor]) -> int:
        size = step.size.itemsize
        if size is not None:
            return self.dims[size] if isinstance(size, str) else size
        base = operands.get(step.size.name)
        return base.itemsize if base is not None else max(a.itemsize for a in args if a.itemsize < INT64 or len(args) == 1)

    def _variant(self, operation: str, tag: str) -> str:
        if operation not in ("linear_base", "linear_adapter", "linear_4bit"):
            return operation
        bias = not self.arch.biases.isdisjoint((tag, JOINED.get(tag, tag))) and operation != "linear_adapter"
        if operation != "linear_adapter" and self._quantised(tag):
            if self.eight_bits:
                return ("linear_int8_half" if self.plan.formats.compute == "float16" else "linear_int8") + ("_bias" if bias else "")
            nested = "_nested" if self.plan.lora and self.plan.lora.double_quant else ""
            return self.roles["linear_quantised"] + nested + ("_bias" if bias else "")
        where = ("_gathered" if tag in COLUMN else "_scattered" if tag in ROW else "") if self.gathers else ""
        name = ("linear_bias" if bias else "linear") + where
        return self.linears.get(f"{name}.{tag}") or self.linears.get(name, name)

    def _quantised(self, tag: str) -> bool:
        """Every linear layer but those that the framework leaves whole."""
        return self.plan.lora is not None and self.plan.lora.base_dtype in QUANTISED and tag not in self.profile.whole

    def _autocast_linear(self, operation: str, tag: str, x: Tensor, width: int) -> Tensor:
        """A product of 16-bit copies; those of weights are kept for the rest of the forward pass (torch/autocast_mode.cpp)."""
        (half,) = self.call("to_half", "", [x], None)
        tensors = {"x": half}
        for name, copy_name in (("w", "c"), ("b", "d")) if tag in self.arch.biases and operation == "linear" else (("w", "c"),):
            tensors[copy_name] = self.half_copy(self.weight("linear_base" if operation == "linear" else operation, name, tag, x, width))
        kernel = KERNELS["product_bias" if "d" in tensors else "product"]
        try:
            return self.tape.apply(kernel, {**tensors}, {"y": (self._rows("linear", tag, x), width, 2)}, self.category)["y"]
        finally:
            for tensor in tensors.values():
                tensor.storage.drop()

    def half_copy(self, weight: Parameter) -> Tensor:
        """Autocast's 16-bit copy of a weight, held once for the caller.

        Copies of weights that ask for a gradient are kept; a frozen one is cast each time (aten autocast_mode.cpp, cached_cast).
        """
        caching = self.caching and weight.trainable
        copy = self.copies[id(weight)][1] if caching and id(weight) in self.copies else None
        if copy is None:
            copy = self.tape.apply(KERNELS["half_copy"], {"w": weight}, {"y": (1, weight.elements, 2)}, "temporaries")["y"]
            if caching:
                self.copies[id(weight)] = self.layer, copy
        if caching:
            copy.storage.hold()
        return copy

    # ---- weights
    def weight(self, operation: str, name: str, tag: str, x: Tensor, width: int | None) -> Parameter:
        """The next weight of this layer: made on the first run, found again when the layer is run again."""
        known, i = self.parameters.setdefault(self.layer, []), self.cursor.get(self.layer, 0)
        if name == "w" and i > 0 and self._is_shared(tag):
            shared = "embedding.positions" if tag == "positions" else "embedding.V"
            tied = next((weight for weight in known[:i] if weight.name == shared), None)
            if tied is not None:
                tied.shape = (width or 1, x.width)
                return tied
        self.cursor[self.layer] = i + 1
        if i < len(known):
            return known[i]
        adapter = operation in ADAPTERS
        lora = self.plan.lora
        known.append(
            Parameter(
                name="adapter." + tag if adapter else _weight_name(operation, tag),
                elements=self._elements(operation, name, tag, x, width),
                shape=(width or 1, x.width) if name == "w" and operation.startswith(("linear", "experts")) else None,
                itemsize=self.dims["adapter" if adapter else "weight"],
                trainable=adapter or (lora is None and tag not in self.arch.frozen and not self._frozen(operation, tag)),
                resident=self.plan.formats.resident_gradients,
            )
        )
        return known[-1]

    def _is_shared(self, tag: str) -> bool:
        """Whether a table may have been used before: words by a decoder, a tied head; positions where both stacks have one table."""
        return tag == "V" or (tag == "head" and self.arch.tied) or (tag == "positions" and "shared_positions" in self.arch.flags)

    def _frozen(self, operation: str, tag: str) -> bool:
        """Whether the job leaves a weight at this place untrained."""
        name, numbered = _weight_name(operation, tag), self.layer[0] in self.frozen_stretches
        return is_frozen(self.plan.frozen, self.arch, name, self.kind, layer=self.layer != ENDS, numbered=numbered)

    def _elements(self, operation: str, name: str, tag: str, x: Tensor, width: int | None) -> int:
        if operation.startswith(("embedding", "convolve")):
            return (self.dims[tag] if name == "w" else 1) * (width or 1)
        if operation in ("add_table", "prepend"):
            return self.dims.get(tag, 1) * x.width
        if operation in ("experts_te", "experts_rows"):
            return self.dims["E"] * x.width * (width or 1)
        if operation in ONE_A_HEAD:
            return self.dims["a"]
        if operation == "expert_bias":
            return self.dims["E"] * ((width or 0) // self.dims["k"])
        if operation == "experts_mm":
            k = self.dims["k"]
            return self.dims["E"] * (x.width // k) * ((width or k) // k)
        if operation == "magnitude":
            return width or 1
        if operation == "conv1d":
            return self.dims["rank"] * (width or 1)
        if operation.startswith(("linear", "logits", "fused_loss")):
            return x.width * (width or 1) if name == "w" else (width or 1)
        return x.width // width if width else x.width

    # ---- layers
    def run_layer(self, layer: Layer, kind: str, x: Tensor) -> Tensor:
        """One layer of the given kind on its own weights."""
        before = self.layer, self.tape.layer, self.kind
        pool = self.tape.pool
        self.layer, self.tape.layer, self.cursor[layer], self.tape.pool = layer, layer, 0, self.tape.pool_of(layer)
        self.enter(kind)
        try:
            return self.block(BLOCKS[self.roles["layer"]], [x], None)
        finally:
            while self.named_weights:
                self.named_weights.pop().drop()
            self.layer, self.tape.layer, kind = before
            self.tape.pool = pool
            self.enter(kind)

    def trait(self, name: str, default: str) -> str:
        """A trait of the model, or of the stack whose layers are run."""
        traits = self.arch.traits
        return traits.get(f"{self.kind}.{name}", traits.get(name, default))

    def enter(self, kind: str) -> None:
        """From here on roles and sizes are those of the layers of `kind`."""
        self.kind, self.roles, self.dims = kind, self.kinds[kind], self.sizes[kind]
        self.tape.dims = self.dims

    def leaf(self, x: Tensor) -> Tensor:
        """A tensor that asks for a gradient itself; the graph holds it and its gradient to the end (peft: enable_input_require_grads)."""
        node = Node(NO_FORMULA, {}, self.tape.layer, run=lambda _: None)
        self.leaves.append((node, x.storage.hold()))
        x.storage.hold()
        return replace(x, node=node, output="y")


def _weight_name(operation: str, tag: str) -> str:
    """`linear.q`, `embedding.V`, `norm.layer`, `norm.final` …: what adapters, quantisation and reports call a weight."""
    kind = "norm" if "norm" in operation or operation.startswith("weight") else operation.partition("_")[0]
    return f"{kind}.{tag or 'layer'}"
