"""What is not counted of how a job's kernels run: compiled, in graphs, in 8 bits, fused, with states in the host's memory."""

from __future__ import annotations

from collections.abc import Iterator

from peakgate.memory import cuda_graphs
from peakgate.memory.job import Fp8, Job
from peakgate.memory.offload import on_host
from peakgate.memory.plan import Plan
from peakgate.memory.profiles import megatron_fp8, profile_of
from peakgate.memory.profiles.liger import unknown_kernels


def of_runtime(job: Job, plan: Plan) -> Iterator[str]:
    """Offload, 8-bit products, fused and compiled kernels, graphs, buckets."""
    profile = profile_of(plan.profile)
    layers = profile.compiles_layers(plan)
    yield from _of_offload(plan)
    yield from _of_8_bits(job, plan, compiled=layers)
    yield from _of_fused(plan)
    if plan.compiled and not profile.compiled and not layers:
        yield "framework: compiled kernels are not counted"
    if problem := cuda_graphs.problem(plan):
        yield f"framework.cuda_graphs: CUDA graphs {problem}"
    if plan.framework == "colossalai" and plan.degrees.sharding not in ("none", "ddp", "zero2"):
        yield f"parallelism.sharding: buffers of ColossalAI's {plan.degrees.sharding} are not counted"


def _of_offload(plan: Plan) -> Iterator[str]:
    if plan.offload_parameters and "parameters" not in on_host(plan):
        yield "offload.parameters: only the shards of FSDP and of ZeRO stage 3 are counted in the host's memory"
    if plan.offload_activations and (plan.checkpointing != "full" or plan.reentrant):
        yield "offload.activations: those that are no checkpoints are counted as if they stayed on the GPU"
    if plan.offload_optimizer and plan.framework == "megatron":
        yield "offload.optimizer: what a hybrid optimizer keeps on the GPU is not counted"


def _of_fused(plan: Plan) -> Iterator[str]:
    profile = profile_of(plan.profile)
    unknown = unknown_kernels(plan) if profile.transformers else sorted(plan.fused_kernels - profile.fused)
    whose = f"the block {plan.architecture.block!r}" if profile.transformers else plan.framework
    if unknown:
        yield f"framework.fused_kernels: {', '.join(unknown)} of {whose} are not counted"
    if "fused_linear_cross_entropy" in plan.fused_kernels and plan.loss != "fused":
        yield "framework.fused_kernels: fused_linear_cross_entropy and another loss.implementation cannot both be"


TORCHAO = (None, "current")
"""Scaling of whole tensors, which torchao calls dynamic: its linear keeps its operands as they were (float8/float8_linear.py)."""


def _of_8_bits(job: Job, plan: Plan, *, compiled: bool) -> Iterator[str]:
    """Of Megatron-LM all but some recipes; elsewhere only layers that are compiled whole, where a product keeps 16-bit operands."""
    stated = job.precision.fp8 or Fp8()
    if plan.framework != "megatron":
        asked = job.precision.compute == "float8" or job.precision.fp8
        if asked and not (compiled and stated.recipe in TORCHAO):
            yield "precision: 8-bit products are counted as 16-bit ones"
        return
    if plan.fp8 and (problem := megatron_fp8.problem(plan)):
        yield f"precision.fp8: products {problem} are not counted"
    if plan.fp8 and stated.keep_transpose is False:
        yield "precision.fp8.keep_transpose: copies of weights that are made anew in every micro-batch are counted as kept"
    if plan.fp8_parameters and plan.fp8 not in ("delayed", "current"):
        yield f"precision.fp8.param_gather: weights that are {plan.fp8} themselves are counted with one copy less"
