"""The kernels of a plain network's pass, and the weights that they take one after the other."""

from __future__ import annotations

from peakgate.memory.kernel_table import KERNELS
from peakgate.memory.kernels import Kernel
from peakgate.memory.machine import Machine
from peakgate.memory.roles import promoted
from peakgate.memory.tape import Operand, Parameter, Tensor

HALF_KERNELS = {
    "linear": "product",
    "linear_bias": "product_bias",
    "convolution": "convolution_half",
    "convolution_bias": "convolution_half_bias",
    "prelu": "prelu_half",
}
"""Under autocast weights are tensors themselves: copies that autograd keeps."""


class Runner:
    """One forward pass: which weight comes next."""

    def __init__(self, machine: Machine) -> None:
        self.machine, self.tape, self.batch = machine, machine.tape, machine.plan.micro_batch
        self.autocast = machine.plan.formats.autocast
        self.used = 0

    def product(self, name: str, given: list[Tensor], weights: list[Parameter], *, width: int, itemsize: int | None = None) -> Tensor:
        """A kernel with weights; under autocast 16-bit copies of them where it has a row for that."""
        if not (self.autocast and name in HALF_KERNELS):
            return self.kernel(KERNELS[promoted(name, given)], given, weights, width=width, itemsize=itemsize)
        copies = [self.machine.half_copy(weight) for weight in weights]
        try:
            return self.kernel(KERNELS[HALF_KERNELS[name]], [*given, *copies], width=width, itemsize=2)
        finally:
            for copy in copies:
                copy.storage.drop()

    def kernel(
        self,
        kernel: Kernel,
        given: list[Tensor],
        weights: list[Parameter] | None = None,
        *,
        rows: int = 0,
        width: int = 0,
        itemsize: int | None = None,
    ) -> Tensor:
        """One row of the table; the output is as the first operand is unless its sizes are given."""
        operands: dict[str, Operand] = {**dict(zip(kernel.inputs, given, strict=True)), **dict(zip("wb", weights or (), strict=False))}
        shape = (rows or self.batch, width or given[0].rows * given[0].width // self.batch, itemsize or max(x.itemsize for x in given))
        return self.tape.apply(kernel, operands, {"y": shape}, self.machine.category)["y"]

    def weight(self, name: str, elements: int) -> Parameter:
        """The next weight: made in the first pass, found again in later ones."""
        machine = self.machine
        known = machine.parameters.setdefault(machine.layer, [])
        if self.used == len(known):
            resident = machine.plan.formats.resident_gradients
            known.append(Parameter(name, elements, itemsize=machine.dims["weight"], trainable=True, resident=resident))
        self.used += 1
        return known[self.used - 1]
