"""What a process takes beside its tensors: library workspaces inside the allocator, context and communication outside.

These are priors with a source each; calibration corrects their sum.
"""

from __future__ import annotations

from peakgate.memory.job import Framework
from peakgate.memory.plan import Degrees
from peakgate.memory.versions import version_of

Capability = tuple[int, int]

WORKSPACE_BYTES = 2 * 4096 * 1024 + 8 * 16 * 1024
"""cuBLAS workspace of one thread (aten/src/ATen/cuda/CublasHandlePool.cpp, parseChosenWorkspaceSize: `:4096:2:16:8`)."""

LARGE_WORKSPACE_BYTES = 32 * 1024 * 1024
"""The same on compute capability 9."""

CONTEXT_BYTES = 300_000_000
"""CUDA context with lazily loaded kernels (github.com/pytorch/pytorch/issues/107667: about 300 MB from CUDA 11.7 on)."""

EAGER_CONTEXT_BYTES = 1_000_000_000
"""The same with every kernel loaded at the start (the same issue: more than 1000 MB before CUDA 11.7) …"""

EAGER_CONTEXTS: dict[Capability, int] = {
    (7, 0): 1343 << 20,  # V100, CUDA 11.2: transformers docs/source/en/perf_train_gpu_one.mdx, after one tensor
    (8, 6): 1001 << 20,  # RTX 3090, CUDA 11.1: github.com/pytorch/pytorch/issues/54564, after one small tensor
}
"""… and where it was measured, by compute capability: how much code there is depends on the card's architecture."""

LAZY_FROM = {"cuda": (11, 7), "torch": (1, 13)}
"""Versions from which kernels are loaded on demand: CUDA can, and torch/cuda/__init__.py sets CUDA_MODULE_LOADING=LAZY."""

FIRST_PAIR_BYTES = 544_000_000
"""The first NCCL group, of two ranks, with its kernels: 4 A100 over NVLink (github.com/NVIDIA/nccl/issues/964) …"""

FIRST_COMMUNICATOR_BYTES = 688_000_000
"""… and one of more ranks."""

NEXT_COMMUNICATOR_BYTES = 16 * 10 * 1024 * 1024
"""16 channels of 10 MiB (nccl src/init.cc: LL, LL128 and Simple buffers; 10,485,760 B in github.com/NVIDIA/nccl/issues/1685)."""

MULTIPROCESSORS = {(7, 0): 80, (7, 5): 72, (8, 0): 108, (8, 6): 84, (8, 9): 142, (9, 0): 132, (10, 0): 148, (12, 0): 188}
"""Of the largest card of a compute capability (NVIDIA's architecture white papers); the buffer of partial sums is at most 3 MB."""


def workspace_bytes(capability: Capability | None) -> int:
    """Bytes of one library workspace on a card of this compute capability (None: not known)."""
    return LARGE_WORKSPACE_BYTES if capability and capability[0] == 9 else WORKSPACE_BYTES


def context_bytes(stated: Framework, capability: Capability | None) -> int:
    """Bytes of the CUDA context at the stated versions; without any, today's."""
    versions = {"cuda": version_of(stated.cuda), "torch": version_of(stated.torch)}
    if not any(versions[name] and versions[name] < lazy for name, lazy in LAZY_FROM.items()):
        return CONTEXT_BYTES
    return EAGER_CONTEXTS.get(capability or (0, 0), EAGER_CONTEXT_BYTES)


def groups_of(degrees: Degrees) -> list[int]:
    """Sizes of the groups of more than one rank that a GPU is in."""
    return [size for size in (degrees.data, degrees.tensor, degrees.pipeline, degrees.context, degrees.expert) if size > 1]


def communication_bytes(degrees: Degrees) -> int:
    """NCCL's buffers outside the allocator."""
    groups = groups_of(degrees)
    if not groups:
        return 0
    first = FIRST_COMMUNICATOR_BYTES if any(size > 2 for size in groups) else FIRST_PAIR_BYTES
    return first + (len(groups) - 1) * NEXT_COMMUNICATOR_BYTES
