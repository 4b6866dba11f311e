"""What CUDA graphs do to memory: what they allocate lies in a pool of its own, which nothing else uses and which is never given back.

Sources: torch/cuda/graphs.py (graph.__enter__ empties the cache, then every allocation of the capture is taken from the graph's pool);
c10/cuda/CUDACachingAllocator.cpp (PrivatePool); Megatron-LM core/transformer/cuda_graphs.py (per layer: all layers' graphs share one pool,
a layer writes its output where the next one reads it, and what enters the first is copied into a buffer of the pool) and
core/full_cuda_graph.py (the forward and backward passes of all micro-batches are one graph; StaticBufferLoader keeps each one's batch).
What the driver takes for the graphs themselves is not published and stays with the context.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from peakgate.memory.allocator import PRIVATE
from peakgate.memory.parallel import rank_dims

if TYPE_CHECKING:
    from peakgate.memory.plan import Plan
    from peakgate.memory.tape import Layer

BATCH_BYTES = 8 + 8
"""Of a token: its number and its label, in int64."""

FULL, LAYERS = "full-iteration", "per-layer"


def pool_of(plan: Plan) -> Callable[[Layer], str]:
    """The pool that a layer allocates from; the ends of the model (layer 0) are in the graph of a whole iteration only."""
    if plan.cuda_graphs == FULL:
        return lambda _: PRIVATE
    if plan.cuda_graphs == LAYERS:
        return lambda layer: PRIVATE if layer[0] else ""
    return lambda _: ""


def static_bytes(plan: Plan) -> int:
    """Buffers at fixed addresses: the batch of every micro-batch that one graph takes, or what enters the first layer and its gradient."""
    dims = rank_dims(plan)
    if plan.cuda_graphs == FULL:
        return plan.accumulation * BATCH_BYTES * dims["T"]
    return 2 * dims["Ts"] * dims["h"] * dims["act"] if plan.cuda_graphs == LAYERS else 0


def problem(plan: Plan) -> str:
    """What of a plan's graphs is not counted."""
    if plan.cuda_graphs == "none":
        return ""
    if plan.profile == "textbook":
        return "have pools, and the textbook's terms have no allocator"
    if plan.cuda_graphs == LAYERS and plan.framework != "megatron":
        return "per layer are Megatron-LM's; what another framework copies around a layer's graph is not counted"
    if plan.compiled or (plan.framework != "megatron" and plan.degrees.sharding not in ("none", "ddp")):
        return "around compiled kernels or sharded states are not counted"
    return ""
