"""What is not counted of how a job's kernels run: compiled, in graphs, in 8 bits, fused, with states in the host's memory."""

from __future__ import annotations

from peakgate.memory.cuda_graphs import problem as graph_problem
from peakgate.memory.job import Fp8, Job
from peakgate.memory.offload import on_host
from peakgate.memory.plan import Plan
from peakgate.memory.profiles import profile_of
from peakgate.memory.profiles.liger import unknown_kernels
from peakgate.memory.profiles.megatron_fp8 import problem


def runtime_not_counted(job: Job, plan: Plan) -> list[str]:
    """One line for each part."""
    profile = profile_of(plan.profile)
    layers = profile.compiles_layers(plan)
    out = [*_offloaded(plan), *_in_8_bits(job, plan, compiled=layers), *_fused(plan)]
    if plan.compiled and not profile.compiled and not layers:
        out.append("framework: compiled kernels are not counted")
    if graph_problem(plan):
        out.append(f"framework.cuda_graphs: CUDA graphs {graph_problem(plan)}")
    if plan.framework == "colossalai" and plan.degrees.sharding not in ("none", "ddp", "zero2"):
        out.append(f"parallelism.sharding: buffers of ColossalAI's {plan.degrees.sharding} are not counted")
    return out


def _offloaded(plan: Plan) -> list[str]:
    out = []
    if plan.offload_parameters and "parameters" not in on_host(plan):
        out.append("offload.parameters: only the shards of FSDP and of ZeRO stage 3 are counted in the host's memory")
    if plan.offload_activations and (plan.checkpointing != "full" or plan.reentrant):
        out.append("offload.activations: those that are no checkpoints are counted as if they stayed on the GPU")
    return out


def _fused(plan: Plan) -> list[str]:
    profile, out = profile_of(plan.profile), []
    if profile.transformers and unknown_kernels(plan):
        out.append(f"framework.fused_kernels: {', '.join(unknown_kernels(plan))} of the block {plan.architecture.block!r} are not counted")
    if not profile.transformers and plan.fused_kernels - profile.fused:
        out.append(f"framework.fused_kernels: {', '.join(sorted(plan.fused_kernels - profile.fused))} of {plan.framework} are not counted")
    if "fused_linear_cross_entropy" in plan.fused_kernels and plan.loss != "fused":
        out.append("framework.fused_kernels: fused_linear_cross_entropy and another loss.implementation cannot both be")
    return out


TORCHAO = (None, "current")
"""Scaling of whole tensors, which torchao calls dynamic: its linear keeps its operands as they were (float8/float8_linear.py)."""


def _in_8_bits(job: Job, plan: Plan, *, compiled: bool) -> list[str]:
    """Of Megatron-LM all but some recipes; elsewhere only layers that are compiled whole, where a product keeps 16-bit operands."""
    stated = job.precision.fp8 or Fp8()
    if plan.framework != "megatron":
        asked = job.precision.compute == "float8" or job.precision.fp8
        return ["precision: 8-bit products are counted as 16-bit ones"] if asked and not (compiled and stated.recipe in TORCHAO) else []
    out = [f"precision.fp8: products {problem(plan)} are not counted"] if plan.fp8 and problem(plan) else []
    if plan.fp8 and stated.keep_transpose is False:
        out.append("precision.fp8.keep_transpose: copies of weights that are made anew in every micro-batch are counted as kept")
    if plan.fp8_parameters and plan.fp8 not in ("delayed", "current"):
        out.append(f"precision.fp8.param_gather: weights that are {plan.fp8} themselves are counted with one copy less")
    return out
