"""From a list of operations to a network: every shape inferred, every skip connection resolved."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import lru_cache
from math import prod

from peakgate.memory.catalog.nearest import did_you_mean
from peakgate.memory.job import Operation, Operations
from peakgate.memory.plain.shapes import Made, Shape, ShapeError
from peakgate.memory.plain.table import JOINING, TABLE

LARGEST_SIZE = 1 << 40
"""Elements of one example beyond which a size is a mistake."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """One operation; `inputs` are places of earlier outputs, 0 the network's own input."""

    op: str
    inputs: tuple[int, ...]
    made: Made
    dying: tuple[int, ...] = ()
    """Outputs that nobody reads after it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """A plain network; `integers`: its input are ids of an embedding."""

    input: Shape
    loss: str
    layers: tuple[Layer, ...]
    integers: bool

    @property
    def output(self) -> Shape:
        """Shape of the last operation's output."""
        return self.layers[-1].made.shape

    @property
    def targets(self) -> int:
        """Elements of one example's target: one class a position, or as many numbers as the output."""
        channels_last = next((x.op != "linear" for x in reversed(self.layers) if x.made.weight), True)
        classes = self.output[0] if channels_last else self.output[-1]
        return {"cross_entropy": prod(self.output) // classes, "mse": prod(self.output)}.get(self.loss, 0)


class NetworkError(Exception):
    """An operation that cannot be: its path below `model.operations`, and what to do."""

    def __init__(self, path: str, description: str) -> None:
        super().__init__(f"{path}: {description}")
        self.path, self.description = path, description


@lru_cache(maxsize=256)
def network_of(operations: Operations) -> Network:
    """Infers every shape; raises NetworkError for the first operation that cannot be."""
    if not operations.input or min(operations.input) < 1:
        raise NetworkError("input", "is missing: give the shape of one example, without the batch")
    if not operations.layers:
        raise NetworkError("layers", "is empty: give at least one operation")
    shapes, names, layers = [operations.input], {"input": 0}, []
    for place, operation in enumerate(operations.layers, 1):
        try:
            layer = _layer(operation, place, shapes, names)
        except ShapeError as error:
            raise NetworkError(f"layers[{place - 1}]{'.' if error.field else ''}{error.field}", error.description) from error
        shapes.append(layer.made.shape)
        layers.append(layer)
        if operation.name:
            names[operation.name] = place
    integers = any(layer.op == "embedding" for layer in layers)
    return Network(input=operations.input, loss=operations.loss or "cross_entropy", layers=_with_last_uses(layers), integers=integers)


def _layer(operation: Operation, place: int, shapes: list[Shape], names: dict[str, int]) -> Layer:
    if operation.op not in (*TABLE, *JOINING):
        known = sorted((*TABLE, *JOINING))
        raise ShapeError("op", f"{operation.op!r} is not one of {', '.join(known)}{did_you_mean(operation.op, tuple(known))}")
    _check_sizes(operation)
    if operation.name in names:
        raise ShapeError("name", f"{operation.name!r} is the name of an earlier output")
    named = tuple(_place(name, names) for name in operation.inputs)
    joins = operation.op in JOINING
    inputs = (place - 1, *named) if joins and len(named) < 2 else named or (place - 1,)
    if not joins and len(inputs) > 1:
        raise ShapeError("inputs", f"{operation.op} takes one")
    if operation.op == "embedding" and inputs != (0,):
        raise ShapeError("", "takes the network's own input")
    given = [shapes[i] for i in inputs]
    made = _joined(operation.op, given) if joins else TABLE[operation.op](operation, given[0])
    if prod(made.shape) > LARGEST_SIZE or made.weight > LARGEST_SIZE:
        raise ShapeError("", f"an output of {list(made.shape)} is absurd")
    return Layer(op=operation.op, inputs=inputs, made=made)


def _check_sizes(operation: Operation) -> None:
    for field in fields(operation):
        value = getattr(operation, field.name)
        if isinstance(value, int) and not 0 <= value <= LARGEST_SIZE:
            raise ShapeError(field.name, f"{value} is {'negative' if value < 0 else 'absurd'}")
    if operation.p is not None and not 0 <= operation.p <= 1:
        raise ShapeError("p", f"{operation.p:g} is outside 0 to 1")


def _place(name: str, names: dict[str, int]) -> int:
    if name not in names:
        raise ShapeError("inputs", f"{name!r} is no earlier output: known are {', '.join(names)}")
    return names[name]


def _joined(op: str, given: list[Shape]) -> Made:
    """Several outputs in one: element by element (a smaller one is repeated), or along the first size."""
    if len(given) < 2:
        raise ShapeError("inputs", f"{op} needs the name of an earlier output")
    if op == "concat":
        if len({x[1:] for x in given}) > 1:
            raise ShapeError("inputs", f"shapes {', '.join(map(str, map(list, given)))} differ behind the first size")
        return Made(shape=(sum(x[0] for x in given), *given[0][1:]), kernel="concat")
    largest = max(given, key=prod)
    if any(not _repeats(x, largest) for x in given) or len(given) > 2:
        raise ShapeError("inputs", f"shapes {', '.join(map(str, map(list, given)))} do not fit each other, or are more than two")
    if given[0] == given[1]:
        return Made(shape=largest, kernel=op)
    if given[0] != largest:
        raise ShapeError("inputs", "the larger one comes first")
    return Made(shape=largest, kernel={"add": "add_broadcast", "multiply": "multiply_rows"}[op])


def _repeats(small: Shape, large: Shape) -> bool:
    return len(small) == len(large) and all(a in (1, b) for a, b in zip(small, large, strict=True))


def _with_last_uses(layers: list[Layer]) -> tuple[Layer, ...]:
    """Each output lives until its last reader has returned; the last output lives on."""
    last = {0: 0} | {place: place for place in range(1, len(layers) + 1)}
    for place, layer in enumerate(layers, 1):
        last |= dict.fromkeys(layer.inputs, place)
    del last[len(layers)]
    dying: dict[int, list[int]] = {}
    for output, reader in last.items():
        dying.setdefault(reader, []).append(output)
    return tuple(
        Layer(op=layer.op, inputs=layer.inputs, made=layer.made, dying=tuple(dying.get(place, ()))) for place, layer in enumerate(layers, 1)
    )
