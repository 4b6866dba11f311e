"""What a process takes beside its tensors: library workspaces inside the allocator, context and communication outside.

These are priors with a source each; calibration corrects their sum.
"""

from __future__ import annotations

from peakgate.memory.plan import Degrees

WORKSPACE_BYTES = 2 * 4096 * 1024 + 8 * 16 * 1024
"""cuBLAS workspace of one thread (aten/src/ATen/cuda/CublasHandlePool.cpp, parseChosenWorkspaceSize: `:4096:2:16:8`)."""

LARGE_WORKSPACE_BYTES = 32 * 1024 * 1024
"""The same on compute capability 9."""

CONTEXT_BYTES = 300_000_000
"""CUDA context with lazily loaded kernels (github.com/pytorch/pytorch/issues/107667: about 300 MB from CUDA 11.7 on)."""

FIRST_COMMUNICATOR_BYTES = 688_000_000
"""The first NCCL group of more than two ranks with its kernels, 4 A100 over NVLink (github.com/NVIDIA/nccl/issues/964)."""

NEXT_COMMUNICATOR_BYTES = 16 * 10 * 1024 * 1024
"""16 channels of 10 MiB (nccl src/init.cc: LL, LL128 and Simple buffers; 10,485,760 B in github.com/NVIDIA/nccl/issues/1685)."""

MULTIPROCESSORS = {(7, 0): 80, (7, 5): 72, (8, 0): 108, (8, 6): 84, (8, 9): 142, (9, 0): 132, (10, 0): 148, (12, 0): 188}
"""Of the largest card of a compute capability (NVIDIA's architecture white papers); the buffer of partial sums is at most 3 MB."""


def workspace_bytes(capability: tuple[int, int] | None) -> int:
    """Bytes of one library workspace on a card of this compute capability (None: not known)."""
    return LARGE_WORKSPACE_BYTES if capability and capability[0] == 9 else WORKSPACE_BYTES


def communicators(degrees: Degrees) -> int:
    """Groups of more than one rank that a GPU is in."""
    return sum(size > 1 for size in (degrees.data, degrees.tensor, degrees.pipeline, degrees.context, degrees.expert))


def communication_bytes(degrees: Degrees) -> int:
    """NCCL's buffers outside the allocator."""
    groups = communicators(degrees)
    return FIRST_COMMUNICATOR_BYTES + (groups - 1) * NEXT_COMMUNICATOR_BYTES if groups else 0
