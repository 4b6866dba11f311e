"""A layer that torch.compile turned into one graph: its weights are those of the eager layer, its activations those of one kernel row."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from peakgate.memory.kernels import Kernel, Rule, Size, Step
from peakgate.memory.library import KERNELS
from peakgate.memory.meter import Meter
from peakgate.memory.tape import Operand, Parameter, Tensor

if TYPE_CHECKING:
    from peakgate.memory.machine import Machine


def compiled_layer(machine: Machine, args: list[Tensor]) -> Tensor:
    """Runs the compiled layer of the plan's checkpointing on one hidden state."""
    row, (x,) = KERNELS[machine.roles["compiled_kernel"]], args
    weights = machine.parameters.setdefault(machine.layer, [])
    if not weights:
        weights += eager_weights(machine, x)
    named: dict[str, Operand] = {f"w{i}": weight for i, weight in enumerate(weights)}
    kernel = _with_weights(row, tuple(named))
    operands: dict[str, Operand] = {"x": x, **named}
    return machine.tape.apply(kernel, operands, {"y": (x.rows, x.width, x.itemsize)}, machine.category)["y"]


def _with_weights(row: Kernel, names: tuple[str, ...]) -> Kernel:
    """The row and one gradient a weight: the products of the layer's backward graph."""
    gradients = tuple(Rule((name,), (), (Step("g" + name, Size(name)),)) for name in names)
    return replace(row, rules=(*row.rules, *gradients))


def eager_weights(machine: Machine, x: Tensor) -> list[Parameter]:
    """New weights of the layer, found by running its eager code once without a graph."""
    kind = next(kind for kind, roles in machine.kinds.items() if roles is machine.roles)
    eager = type(machine)(replace(machine.plan, checkpointing="none"), Meter(lambda nbytes: nbytes))
    eager.tape.recording = False
    for name, table in machine.globals.items():
        eager.globals[name] = replace(table, storage=eager.tape.allocate(table.storage.nbytes))
    eager.run_layer(machine.layer, kind, replace(x, storage=eager.tape.allocate(x.nbytes), node=None))
    return eager.parameters[machine.layer]
