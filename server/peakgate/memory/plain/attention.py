"""Self-attention as nn.MultiheadAttention(batch_first=True) runs it (torch/nn/functional.py: multi_head_attention_forward)."""

from __future__ import annotations

from peakgate.memory.kernel_table import KERNELS
from peakgate.memory.plain.runner import Runner
from peakgate.memory.plain.shapes import Made
from peakgate.memory.tape import Parameter, Tensor


def attention(run: Runner, made: Made, x: Tensor) -> Tensor:
    """One packed product for query, key and value, a copy of it, the fused core, and the product behind it."""
    length, width = made.shape
    inside = [run.weight(f"attention.{name}", size) for name, size in (("w", 3 * width * width), ("b", 3 * made.bias)) if size]
    outside = [run.weight(f"attention.{name}", size) for name, size in (("w", width * width), ("b", made.bias)) if size]
    turned = run.kernel(KERNELS["view" if x.transposed else "contiguous"], [x])  # (sequence, batch): the product copies what is not
    packed = run.product("linear", [turned], inside[:1], width=3 * length * width)
    turned.storage.drop()
    if made.bias:
        packed = _then(packed, _add_bias(run, packed, inside[1]))
    packed = _then(packed, run.kernel(KERNELS["contiguous"], [packed]))  # in_proj.unflatten(…).transpose(0, -2).contiguous()
    parts = [run.kernel(KERNELS["slice"], [packed], width=length * width) for _ in range(3)]
    packed.storage.drop()
    core = _core(run, made, parts)
    for part in parts:
        part.storage.drop()
    y = _then(core, run.product("linear_bias" if made.bias else "linear", [core], outside, width=length * width))
    y.transposed = run.batch > 1  # it comes back as (sequence, batch)
    return y


def _then(old: Tensor, new: Tensor) -> Tensor:
    old.storage.drop()
    return new


def _add_bias(run: Runner, packed: Tensor, bias: Parameter) -> Tensor:
    if not run.autocast:
        return run.kernel(KERNELS["add_weight"], [packed], [bias])
    copy = run.machine.half_copy(bias)
    try:
        return run.kernel(KERNELS["add_broadcast"], [packed, copy])
    finally:
        copy.storage.drop()


def _core(run: Runner, made: Made, parts: list[Tensor]) -> Tensor:
    """Flash in 16 bits; float32 takes the efficient kernel, whose statistics are padded to 32 rows (aten cuda/sdp_utils.cpp)."""
    length, _ = made.shape
    run.machine.dims |= {
        "lse": made.statistics * run.batch * length,
        "lse32": made.statistics * run.batch * -(-length // 32) * 32,
    }
    if parts[0].itemsize == 2:
        return run.kernel(KERNELS["flash"], parts)
    core = run.kernel(KERNELS["efficient_plain"], parts)  # in (batch, sequence) order, which the product behind it copies
    return _then(core, run.kernel(KERNELS["contiguous"], [core])) if run.batch > 1 else core
