"""Runs a plain network on a machine's tape: a module after the other, as nn.Sequential calls them, then the loss.

A Sequential rebinds its input after a module has returned; a named output lives until its last reader has. Kernels of cuDNN may ask for
a workspace that depends on the algorithm it picks: none is counted, and the answer says so.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from math import prod

from peakgate.memory.kernel_table import KERNELS
from peakgate.memory.kernels import Kernel, parse
from peakgate.memory.machine import Machine
from peakgate.memory.plain.attention import attention
from peakgate.memory.plain.network import Layer, Network
from peakgate.memory.plain.runner import Runner
from peakgate.memory.plain.shapes import FLOAT32, HALF
from peakgate.memory.plan import Plan
from peakgate.memory.tape import INT64, Tensor

IN_ORDER = frozenset({"linear", "layer_norm", "rms_norm", "flatten", "reshape"})
"""Operations that copy a transposed input first; element-wise ones hand its layout on (aten TensorIterator.cpp)."""


def has_convolutions(network: Network) -> bool:
    """Whether cuDNN runs in it."""
    return any(layer.made.kernel.startswith("convolution") for layer in network.layers)


def input_bytes(plan: Plan, network: Network) -> int:
    """The batch with its targets, and the buffers of batch norms (running mean and variance, one int64 counter)."""
    itemsize = INT64 if network.integers else _input_itemsize(plan)
    target = INT64 if network.loss == "cross_entropy" else _input_itemsize(plan)
    batch = plan.micro_batch * (prod(network.input) * itemsize + network.targets * target)
    weight = 4 if plan.formats.autocast else _input_itemsize(plan)
    return batch + sum(layer.made.buffers * weight + INT64 for layer in network.layers if layer.made.buffers)


def _input_itemsize(plan: Plan) -> int:
    """Examples come in the format of the weights (a script casts them; autocast takes them as they are)."""
    return 4 if plan.formats.autocast or plan.formats.compute == "float32" else 2


def forward(machine: Machine, network: Network) -> Tensor:
    """Runs every operation: the network's output."""
    run = Runner(machine)
    itemsize = INT64 if network.integers else _input_itemsize(machine.plan)
    values = {0: Tensor(run.tape.allocate(0), run.batch, prod(network.input), itemsize)}
    for place, layer in enumerate(network.layers, 1):
        values[place] = _layer(run, layer, [values[i] for i in layer.inputs])
        for output in layer.dying:
            values.pop(output).storage.drop()
        machine.meter.mark(f"{place} {layer.op}")
    return values[len(network.layers)]


def _layer(run: Runner, layer: Layer, inputs: list[Tensor]) -> Tensor:
    """Runs one operation; under autocast on copies in its format."""
    cast = {HALF: "to_half", FLOAT32: "to_float32"}.get(layer.made.autocast, "") if run.autocast else ""
    given = [run.machine.call(cast, "", [x], None)[0] if cast else x for x in inputs]
    try:
        return _made(run, layer, given)
    finally:
        for x in given if cast else ():
            x.storage.drop()


def _made(run: Runner, layer: Layer, given: list[Tensor]) -> Tensor:
    made = layer.made
    if made.kernel == "attention":
        return attention(run, made, given[0])
    if layer.op in IN_ORDER and given[0].transposed:
        ordered = run.kernel(KERNELS["contiguous"], given)
        try:
            return _made(run, layer, [ordered])
        finally:
            ordered.storage.drop()
    if made.kernel == "concat":
        return run.kernel(concatenation(len(given)), given, width=prod(made.shape))
    x = given[0]
    if made.statistics:
        rows = made.statistics if made.shared else run.batch * made.statistics
        given = [replace(x, rows=rows, width=x.rows * x.width // rows), *given[1:]]
    weights = [run.weight(f"{layer.op}.{name}", size) for name, size in (("w", made.weight), ("b", made.bias)) if size]
    itemsize = run.machine.dims["act"] if layer.op == "embedding" else None
    y = run.product(made.kernel, given, weights, width=prod(made.shape), itemsize=itemsize)
    y.transposed = layer.op == "tokens" or (x.transposed and layer.op not in IN_ORDER)
    return y


@lru_cache(maxsize=64)
def concatenation(count: int) -> Kernel:
    """torch.cat of `count` tensors: one output, of which their gradients are views."""
    names = [f"x{i}" for i in range(count)]
    return parse(f"concat({','.join(names)}) | y=out | {'; '.join(f'{x}: g{x}~gy' for x in names)}")["concat"]


def loss(machine: Machine, network: Network, output: Tensor) -> tuple[Tensor, Tensor]:
    """(loss, output that a plain loop still names). Sources: torch/nn/functional.py cross_entropy; aten native/Loss.cpp."""
    machine.category = "logits"
    machine.meter.enter("loss")
    (x,) = machine.call("to_float32", "", [output], None) if network.loss != "none" and machine.plan.formats.autocast else [output]
    runner = Runner(machine)
    if network.loss == "cross_entropy":
        logarithms = runner.kernel(KERNELS["log_softmax"], [x])
        result = runner.kernel(KERNELS["nll"], [logarithms, _targets(machine, network, INT64)], rows=1, width=1, itemsize=4)
        logarithms.storage.drop()
    elif network.loss == "mse":
        result = runner.kernel(KERNELS["mse"], [x, _targets(machine, network, x.itemsize)], rows=1, width=1, itemsize=4)
    else:
        result = runner.kernel(KERNELS["sum_all"], [x], rows=1, width=1, itemsize=4)
    if x is not output:
        x.storage.drop()
    if not machine.plan.keep_logits:
        output.storage.drop()
    machine.category = "temporaries"
    machine.meter.mark_high("loss")
    return result, output


def _targets(machine: Machine, network: Network, itemsize: int) -> Tensor:
    """Part of the batch, which `input_bytes` counts."""
    return Tensor(machine.tape.allocate(0), machine.plan.micro_batch, network.targets, itemsize)


def saved_bytes(machine: Machine) -> int:
    """Distinct storages that the recorded nodes keep."""
    return sum({id(s): s.nbytes for node in machine.tape.nodes for s in node.saved.values()}.values())
