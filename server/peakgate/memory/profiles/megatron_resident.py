"""What a Megatron-LM rank holds all step long beside weights, gradients and optimizer states.

Sources: Transformer Engine 2.11 (T: transformer_engine/pytorch), Megatron-LM core 0.14 (M: megatron/core), PyTorch
aten/src/ATen/cuda/CublasHandlePool.cpp.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from peakgate.memory.allocator import block_bytes
from peakgate.memory.dtypes import ITEMSIZE
from peakgate.memory.forms import block_of
from peakgate.memory.parallel import rank_dims
from peakgate.memory.prediction import LedgerLine
from peakgate.memory.profiles.megatron_fp8 import weight_copies

if TYPE_CHECKING:
    from peakgate.memory.pipeline import Stage
    from peakgate.memory.plan import Plan
    from peakgate.memory.weights import Weight

GROUPED_STREAMS = 4
"""Streams of a grouped product, each with a workspace (T/cpp_extensions/gemm.py: tex.get_num_cublas_streams)."""

TORCH_HANDLES = 2
"""Threads that run products of torch itself: forward and autograd."""

BATCH_BYTES = 8 + 8 + 8 + 4
"""A token of a micro-batch: tokens, labels, positions in int64, the loss mask in fp32 (Megatron-LM training/utils.py, get_batch…)."""


def resident(plan: Plan, stage: Stage, weights: list[Weight]) -> list[LedgerLine]:
    """The lines of one rank, each a block or a sum of blocks."""
    routed = any(weight.name == "linear.router" for weight in weights)
    dims = rank_dims(plan)
    torch = TORCH_HANDLES * plan.workspace_bytes if stage.heads or routed or not plan.transformer_engine else 0
    engine = engine_workspace(plan.capability) if plan.transformer_engine else 0
    gathers = stage.heads and plan.degrees.sequence_parallel and plan.degrees.tensor > 1
    return [
        LedgerLine(category="gradients", item="stand-ins of fused weight gradients", bytes=stand_ins(plan, weights)),
        LedgerLine(category="parameters", item="8-bit copies of weights", bytes=weight_copies(plan, weights)),
        LedgerLine(category="temporaries", item="cuBLAS workspace", bytes=torch),
        LedgerLine(category="temporaries", item="Transformer Engine workspace", bytes=engine),
        LedgerLine(category="temporaries", item="grouped products workspace", bytes=GROUPED_STREAMS * engine if routed else 0),
        LedgerLine(category="communication", item="gather buffer of the output layer", bytes=2 * dims["T"] * dims["h"] if gathers else 0),
        LedgerLine(category="activations", item="input batch and rotary tables", bytes=BATCH_BYTES * dims["T"] + tables(plan, weights)),
    ]


def engine_workspace(capability: tuple[int, int] | None) -> int:
    """T/cpp_extensions/gemm.py get_cublas_workspace_size_bytes: 32 MiB + 1 KiB from compute capability 9 on, else 4 MiB."""
    return block_bytes(32 * 1024 * 1024 + 1024 if capability and capability[0] >= 9 else 4 * 1024 * 1024)


def stand_ins(plan: Plan, weights: Iterable[Weight]) -> int:
    """One cached tensor for each shape of a trained matrix, returned to autograd in place of its gradient.

    T/module/base.py: get_dummy_wgrad; M/tensor_parallel/layers.py: the output layer with fused accumulation.
    """
    if not plan.fused_weight_gradients:
        return 0
    shapes: list[tuple[int, int]] = []  # no set: the sizes of a compiled plan have no hash
    for weight in weights:
        if weight.trainable and weight.shape is not None and weight.shape not in shapes:
            shapes.append(weight.shape)
    return sum(block_of(rows * columns * ITEMSIZE[plan.formats.parameters]) for rows, columns in shapes)


def tables(plan: Plan, weights: list[Weight]) -> int:
    """Rotary angles in fp32, one table a model; latent attention also keeps cosines and sines, all three a layer.

    M/models/common/embeddings/{rotary_pos_embedding,yarn_rotary_pos_embedding}.py.
    """
    sequence, dims = plan.sequence, plan.architecture.dims
    layers = sum(weight.count for weight in weights if weight.name == "linear.kv_down")
    if layers:
        return layers * sequence * dims["latent_rope"] * (4 + 2 * ITEMSIZE[plan.formats.compute])
    return 4 * sequence * dims["d"] if dims["rope"] else 0
