"""What each operation of a plain network makes: the shape of its output, its weights, and the kernel row that runs it.

Shapes are those of one example, channels first, as in torch.nn; sources: torch/nn/modules/{conv,pooling,upsampling,normalization}.py and
aten/src/ATen/native/{Convolution,Pool,AdaptiveAveragePooling}.cpp.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

from peakgate.memory.job import Operation

Shape = tuple[int, ...]

HALF = "half"
"""Autocast runs it on 16-bit copies (ATen/autocast_mode.h: AT_FORALL_LOWER_PRECISION_FP) …"""

FLOAT32 = "float32"
"""… or in float32 (AT_FORALL_FP32); the others take their input's format."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """An operation's output without the batch, and what it takes to make it."""

    shape: Shape
    kernel: str
    weight: int = 0
    """Elements of its weight …"""
    bias: int = 0
    """… and of its bias; 0 without."""
    statistics: int = 0
    """Rows that a norm keeps two numbers for (a channel dropout: one) …"""
    shared: bool = False
    """… once for the whole batch, not for each example."""
    buffers: int = 0
    """Elements that it keeps beside its weights: the running statistics of a batch norm."""
    autocast: str = ""


class ShapeError(Exception):
    """An operation that its input does not allow: the field that is wrong (empty: the operation), and what to do."""

    def __init__(self, field: str, description: str) -> None:
        super().__init__(description)
        self.field, self.description = field, description


def needed(operation: Operation, field: str) -> int:
    """A size without which the operation cannot be counted. Raises ShapeError."""
    value: int | None = getattr(operation, field)
    if value is None or value < 1:
        raise ShapeError(field, "is missing: give a positive number" if value is None else f"{value} is too small: give 1 or more")
    return value


def or_default(operation: Operation, field: str, default: int, smallest: int = 1) -> int:
    """A size that torch.nn has a default for. Raises ShapeError."""
    value: int | None = getattr(operation, field)
    if value is not None and value < smallest:
        raise ShapeError(field, f"{value} is too small: give {smallest} or more")
    return default if value is None else value


def _spatial(x: Shape, axes: int) -> tuple[int, Shape]:
    """Channels and the last `axes` sizes."""
    if len(x) != axes + 1:
        raise ShapeError("", f"needs channels and {axes} sizes, but its input is {list(x)}")
    return x[0], x[1:]


def _positive(sizes: Shape, x: Shape) -> Shape:
    if min(sizes) < 1:
        raise ShapeError("kernel", f"leaves nothing of an input of {list(x)}")
    return sizes


def _windowed(operation: Operation, sizes: Shape, stride: int) -> Shape:
    """floor((n + 2·padding − dilation·(kernel − 1) − 1) / stride) + 1 (torch/nn/modules/conv.py, pooling.py)."""
    reach = or_default(operation, "dilation", 1) * (needed(operation, "kernel") - 1)
    padding = or_default(operation, "padding", 0, 0)
    return _positive(tuple((n + 2 * padding - reach - 1) // stride + 1 for n in sizes), sizes)


def _bias(operation: Operation, elements: int) -> int:
    return 0 if operation.bias is False else elements


def linear(operation: Operation, x: Shape) -> Made:
    """A product along the last size."""
    out = needed(operation, "out")
    bias = _bias(operation, out)
    return Made(shape=(*x[:-1], out), kernel="linear_bias" if bias else "linear", weight=x[-1] * out, bias=bias, autocast=HALF)


def convolution(axes: int) -> Callable[[Operation, Shape], Made]:
    """nn.Conv1d, Conv2d, Conv3d."""

    def made(operation: Operation, x: Shape) -> Made:
        channels, sizes = _spatial(x, axes)
        out, groups = needed(operation, "out"), or_default(operation, "groups", 1)
        if channels % groups or out % groups:
            raise ShapeError("groups", f"{groups} does not divide {channels} and {out} channels")
        after = _windowed(operation, sizes, or_default(operation, "stride", 1))
        return _convolved(operation, (out, *after), channels * out // groups * needed(operation, "kernel") ** axes, out)

    return made


def transposed_convolution(axes: int) -> Callable[[Operation, Shape], Made]:
    """nn.ConvTranspose1d, 2d, 3d: (n − 1)·stride − 2·padding + dilation·(kernel − 1) + 1."""

    def made(operation: Operation, x: Shape) -> Made:
        channels, sizes = _spatial(x, axes)
        out, kernel, groups = needed(operation, "out"), needed(operation, "kernel"), or_default(operation, "groups", 1)
        more = or_default(operation, "dilation", 1) * (kernel - 1) + 1 - 2 * or_default(operation, "padding", 0, 0)
        after = _positive(tuple((n - 1) * or_default(operation, "stride", 1) + more for n in sizes), x)
        return _convolved(operation, (out, *after), channels * out // groups * kernel**axes, out)

    return made


def _convolved(operation: Operation, shape: Shape, weight: int, out: int) -> Made:
    bias = _bias(operation, out)
    return Made(shape=shape, kernel="convolution_bias" if bias else "convolution", weight=weight, bias=bias, autocast=HALF)


def pooling(kernel: str, axes: int) -> Callable[[Operation, Shape], Made]:
    """A window that moves by its own width unless a stride is stated."""

    def made(operation: Operation, x: Shape) -> Made:
        channels, sizes = _spatial(x, axes)
        stride = or_default(operation, "stride", needed(operation, "kernel"))
        return Made(shape=(channels, *_windowed(operation, sizes, stride)), kernel=kernel)

    return made


def adaptive_pooling(kernel: str, axes: int) -> Callable[[Operation, Shape], Made]:
    """To a stated edge; an average to one number is a mean, which keeps nothing (AdaptiveAveragePooling.cpp)."""

    def made(operation: Operation, x: Shape) -> Made:
        channels, _ = _spatial(x, axes)
        size = or_default(operation, "size", 1)
        return Made(shape=(channels, *(size,) * axes), kernel="resize" if size == 1 and kernel == "pool_average" else kernel)

    return made


def global_average(_: Operation, x: Shape) -> Made:
    """The mean of each channel, without its sizes."""
    return Made(shape=x[:1], kernel="resize")


def batch_norm(_: Operation, x: Shape) -> Made:
    """Statistics of each channel over the batch, and running ones as buffers."""
    return Made(shape=x, kernel="layer_norm", weight=x[0], bias=x[0], statistics=x[0], shared=True, buffers=2 * x[0])


def layer_norm(_: Operation, x: Shape) -> Made:
    """Over the last size."""
    return Made(shape=x, kernel="layer_norm", weight=x[-1], bias=x[-1], statistics=prod(x[:-1]), autocast=FLOAT32)


def rms_norm(_: Operation, x: Shape) -> Made:
    """nn.RMSNorm over the last size: one fused kernel."""
    return Made(shape=x, kernel="rms_norm_fused", weight=x[-1], statistics=prod(x[:-1]), autocast=FLOAT32)


def group_norm(operation: Operation, x: Shape) -> Made:
    """Over each group of channels."""
    groups = needed(operation, "groups")
    if x[0] % groups:
        raise ShapeError("groups", f"{groups} does not divide {x[0]} channels")
    return Made(shape=x, kernel="layer_norm", weight=x[0], bias=x[0], statistics=groups, autocast=FLOAT32)


def instance_norm(_: Operation, x: Shape) -> Made:
    """Over each channel of each example, without weights (nn.InstanceNorm: affine=False)."""
    return Made(shape=x, kernel="norm_without_weights", statistics=x[0])


def elementwise(kernel: str, in_place: str = "", autocast: str = "") -> Callable[[Operation, Shape], Made]:
    """An activation; `in_place`: the kernel that writes over its input."""

    def made(operation: Operation, x: Shape) -> Made:
        if operation.inplace and not in_place:
            raise ShapeError("inplace", "torch.nn has no in-place form of it: leave it out")
        return Made(shape=x, kernel=in_place if operation.inplace else kernel, autocast=autocast)

    return made


def gated(_: Operation, x: Shape) -> Made:
    """nn.GLU over the channels, or over the last size where there is no other."""
    return Made(shape=(x[0] // 2, *x[1:]), kernel="pool_average")


def prelu(operation: Operation, x: Shape) -> Made:
    """One slope, or `size` of them."""
    return Made(shape=x, kernel="prelu", weight=or_default(operation, "size", 1), autocast=HALF)


def dropout(operation: Operation, x: Shape) -> Made:
    """A probability of 0 returns its input (aten native/Dropout.cpp)."""
    return Made(shape=x, kernel="dropout" if operation.p != 0 else "view")


def channel_dropout(operation: Operation, x: Shape) -> Made:
    """Whole channels: a small tensor of noise that is multiplied in (Dropout.cpp: feature_dropout)."""
    return Made(shape=x, kernel="dropout_channels" if operation.p != 0 else "view", statistics=x[0])


def attention(operation: Operation, x: Shape) -> Made:
    """nn.MultiheadAttention(batch_first=True)(x, x, x, need_weights=False) of a sequence (length, width)."""
    if len(x) != 2:
        raise ShapeError("", f"needs a length and a width, but its input is {list(x)}")
    if x[1] % needed(operation, "heads"):
        raise ShapeError("heads", f"{operation.heads} heads do not divide a width of {x[1]}")
    return Made(shape=x, kernel="attention", weight=x[1], bias=_bias(operation, x[1]), statistics=operation.heads or 1, autocast=HALF)


def upsample(operation: Operation, x: Shape) -> Made:
    """Nearest or linear: neither keeps anything."""
    scale = or_default(operation, "scale", 2)
    return Made(shape=(x[0], *(n * scale for n in x[1:])), kernel="resize", autocast=FLOAT32)


def pixel_shuffle(operation: Operation, x: Shape) -> Made:
    """Channels become pixels: a copy."""
    scale = or_default(operation, "scale", 2)
    channels, sizes = _spatial(x, 2)
    if channels % scale**2:
        raise ShapeError("scale", f"{scale}² does not divide {channels} channels")
    return Made(shape=(channels // scale**2, *(n * scale for n in sizes)), kernel="resize")


def flatten(_: Operation, x: Shape) -> Made:
    """One row an example."""
    return Made(shape=(prod(x),), kernel="view")


def reshape(operation: Operation, x: Shape) -> Made:
    """The same elements in another shape."""
    if not operation.shape or min(operation.shape) < 1 or prod(operation.shape) != prod(x):
        raise ShapeError("shape", f"{list(operation.shape)} does not hold the {prod(x)} elements of {list(x)}")
    return Made(shape=operation.shape, kernel="view")


def tokens(_: Operation, x: Shape) -> Made:
    """Channels and sizes become a sequence of channels (flatten(2).transpose(1, 2)): a view."""
    return Made(shape=(prod(x[1:]), x[0]), kernel="view")


def position_embedding(_: Operation, x: Shape) -> Made:
    """A learned tensor as large as one example is added."""
    return Made(shape=x, kernel="add_weight", weight=prod(x))


def embedding(operation: Operation, x: Shape) -> Made:
    """A row of `size` for each number of the input."""
    out = needed(operation, "out")
    return Made(shape=(*x, out), kernel="embedding", weight=needed(operation, "size") * out)
