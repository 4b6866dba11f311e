"""DoRA: adapters that also scale each output by a learned magnitude over the norm of the adapted weight.

Source: peft tuners/lora/dora.py, DoraLinearLayer.forward, and tuners/lora/variants.py, DoraLinearVariant.forward. The norm is made without
a graph, of a whole weight in the adapters' format; to get there the adapters run on an identity matrix as wide as the input, which their
graph holds until the function returns. With dropout the base product is made again, of that whole weight, which autograd then keeps.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

from peakgate.memory.library import KERNELS
from peakgate.memory.machine import Machine
from peakgate.memory.tape import Tensor


def dora(machine: Machine, args: list[Tensor]) -> Tensor:
    """The adapted output in the adapters' format, of the input in that format (behind its dropout) and the base product."""
    x, base = args
    with ExitStack() as names:  # they go at the end, also when a recomputation stops inside
        delta = _delta(machine, x, base, lambda tensor: names.callback(tensor.storage.drop))
    try:
        return machine.call("add", "", [base, delta], base.width)[0]
    finally:
        delta.storage.drop()


def _delta(machine: Machine, x: Tensor, base: Tensor, name: Callable[[Tensor], object]) -> Tensor:
    """DoraLinearLayer.forward; `name` keeps a tensor to its end."""
    tag, out = machine.tag, base.width

    def named(tensor: Tensor) -> Tensor:
        name(tensor)
        return tensor

    whole = _norm(machine, x, base, named)
    scale = named(_magnitude(machine, tag, base))
    (low,) = machine.call("linear_adapter", tag, [x], machine.dims["rank"])
    high = named(_then(machine, "linear_adapter", tag, low, out))
    own = named(_product(machine, x, whole, base)) if machine.plan.lora and machine.plan.lora.dropout else base
    less = named(machine.call("add_small", "", [scale], None)[0])
    first = named(_by_row(machine, own, less))
    scaled = named(_then(machine, "scale", "", _by_row(machine, high, scale), None))
    return machine.call("add", "", [first, scaled], out)[0]


def _then(machine: Machine, operation: str, tag: str, x: Tensor, width: int | None) -> Tensor:
    """An operation on what nobody names."""
    try:
        return machine.call(operation, tag, [x], width)[0]
    finally:
        x.storage.drop()


def _norm(machine: Machine, x: Tensor, base: Tensor, named: Callable[[Tensor], Tensor]) -> Tensor:
    """The whole weight in the adapters' format; an identity and what the adapters made of it are named like it."""
    tape, width, rank = machine.tape, machine.dims["adapter"], machine.dims["rank"]
    for elements in (x.width, rank, base.width):  # identity, A of it, B of that
        named(Tensor(tape.allocate(x.width * elements * width), x.width, elements, width))
    size = 0 if machine.dims["weight"] == width else x.width * base.width * width  # else it is the parameter itself
    whole = named(Tensor(tape.allocate(size), base.width, x.width, width))
    for storage in [tape.allocate(x.width * base.width * width) for _ in ("scaled", "sum")]:
        storage.drop()
    return whole


def _magnitude(machine: Machine, tag: str, base: Tensor) -> Tensor:
    """The learned magnitude over the norm, which is kept: one number an output."""
    weight = machine.weight("magnitude", "w", tag, base, base.width)
    shape = {"y": (1, base.width, machine.dims["adapter"])}
    return machine.tape.apply(KERNELS["magnitude"], {"w": weight}, shape, machine.category)["y"]


def _product(machine: Machine, x: Tensor, whole: Tensor, base: Tensor) -> Tensor:
    shape = {"y": (x.rows, base.width, x.itemsize)}
    return machine.tape.apply(KERNELS["product_frozen"], {"x": x, "c": whole}, shape, machine.category)["y"]


def _by_row(machine: Machine, x: Tensor, row: Tensor) -> Tensor:
    """Each row times one number a column, in the larger format."""
    wide = max(x.itemsize, row.itemsize)
    kernel = KERNELS["multiply_row" if x.itemsize == wide else "multiply_row_promoted"]
    return machine.tape.apply(kernel, {"x0": x, "x1": row}, {"y": (x.rows, x.width, wide)}, machine.category)["y"]
