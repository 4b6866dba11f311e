"""Every operation of a plain network by the name that a job document uses: torch.nn's, in lower case with underscores."""

from __future__ import annotations

from collections.abc import Callable

from peakgate.memory.job import Operation
from peakgate.memory.plain import shapes as s
from peakgate.memory.plain.shapes import FLOAT32, Made, Shape

KEEPS_INPUT = ("elu", "selu", "celu", "leaky_relu", "hardtanh", "relu6")
"""Activations whose gradient reads the input; in place it reads the output (tools/autograd/derivatives.yaml: `elu_`, `hardtanh_` …)."""

CLONES_INPUT = ("silu", "mish", "hardswish", "hardsigmoid")
"""Those without such a formula: in place, autograd keeps a clone of the input (gen_variable_type.py)."""

BY_AXES: dict[str, Callable[[int], Callable[[Operation, Shape], Made]]] = {
    "conv": s.convolution,
    "conv_transpose": s.transposed_convolution,
    "max_pool": lambda axes: s.pooling("pool_max", axes),
    "avg_pool": lambda axes: s.pooling("pool_average", axes),
    "adaptive_avg_pool": lambda axes: s.adaptive_pooling("pool_average", axes),
    "adaptive_max_pool": lambda axes: s.adaptive_pooling("pool_max", axes),
}
"""Names that end in 1d, 2d or 3d."""

TABLE: dict[str, Callable[[Operation, Shape], Made]] = {
    **{f"{name}{axes}d": make(axes) for name, make in BY_AXES.items() for axes in (1, 2, 3)},
    **{name: s.elementwise("gelu", "relu_in_place") for name in KEEPS_INPUT},
    **{name: s.elementwise("gelu", "keep_in_place") for name in CLONES_INPUT},
    **{name: s.elementwise("gelu") for name in ("gelu", "log_sigmoid", "hardshrink", "softshrink")},
    **{f"batch_norm{axes}": s.batch_norm for axes in ("", "1d", "2d", "3d")},
    **{f"instance_norm{axes}": s.instance_norm for axes in ("", "1d", "2d", "3d")},
    **{f"dropout{axes}d": s.channel_dropout for axes in (1, 2, 3)},
    "relu": s.elementwise("relu", "relu_in_place"),
    "sigmoid": s.elementwise("relu"),
    "tanh": s.elementwise("relu"),
    "softplus": s.elementwise("gelu", autocast=FLOAT32),
    "softmax": s.elementwise("softmax", autocast=FLOAT32),
    "log_softmax": s.elementwise("log_softmax", autocast=FLOAT32),
    "identity": s.elementwise("view"),
    "glu": s.gated,
    "prelu": s.prelu,
    "linear": s.linear,
    "embedding": s.embedding,
    "position_embedding": s.position_embedding,
    "attention": s.attention,
    "layer_norm": s.layer_norm,
    "rms_norm": s.rms_norm,
    "group_norm": s.group_norm,
    "dropout": s.dropout,
    "global_avg_pool": s.global_average,
    "upsample": s.upsample,
    "pixel_shuffle": s.pixel_shuffle,
    "flatten": s.flatten,
    "reshape": s.reshape,
    "tokens": s.tokens,
}
"""Operations of one input."""

JOINING = ("add", "multiply", "concat")
"""Operations of several inputs: the output before them and those that they name."""
