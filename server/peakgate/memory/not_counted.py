"""What a job states that this version does not count."""

from __future__ import annotations

from peakgate.memory.dtypes import QUANTISED
from peakgate.memory.job import Job
from peakgate.memory.methods.not_counted import of_method, of_phases
from peakgate.memory.not_counted_runtime import runtime_not_counted
from peakgate.memory.plan import Plan
from peakgate.memory.profiles import PROFILES, profile_of
from peakgate.memory.uncounted_placement import uncounted_placement

PEFT = ("huggingface", "deepspeed")
"""Frameworks whose adapters are peft's."""


def not_counted(job: Job, plan: Plan) -> tuple[str, ...]:
    """What the job states that this version does not count: the answer is then UNDECIDED, never silently wrong."""
    profile, out = profile_of(plan.profile), []
    if plan.architecture.network:
        out += _not_counted_of_operations(plan)
    elif plan.framework not in PROFILES:
        out.append(f"framework.name: {plan.framework} has no kernel profile in this version; figures are those of huggingface")
    out += of_method(job, plan)
    if profile.blocks and plan.architecture.block not in profile.blocks:
        out.append(f"model: {plan.framework} has no kernels of the block {plan.architecture.block!r}; figures are partly huggingface's")
    out += runtime_not_counted(job, plan)
    if plan.checkpointing == "memory-budget":
        out.append("checkpointing.mode: memory-budget is counted as none, but for a budget of 0 in layers that are compiled one by one")
    own = plan.framework == "megatron"
    wrapped = plan.checkpointing == "selective" and bool(plan.recomputed)
    if job.checkpointing.modules and set(job.checkpointing.modules) != {"core_attn"} and not own and not wrapped:
        out.append("checkpointing.modules: only core_attn and mlp of Hugging Face's models are counted")
    out += of_phases(job, plan)
    if plan.lora and plan.lora.dora:
        out += _not_counted_of_dora(plan)
    if plan.lora and plan.lora.base_dtype == "int8" and plan.framework not in PEFT:
        out.append(
            f"lora.base_dtype: products of 8-bit weights are counted as peft and bitsandbytes run them; {plan.framework} has its own"
        )
    listed = own or profile.per_operation or wrapped
    if plan.checkpointing == "selective" and plan.attention != "eager" and plan.profile != "textbook" and not listed:
        out.append("checkpointing.mode: selective recomputes only an eager attention core; a list of operations is counted as none")
    out += uncounted_placement(job, plan)
    if own:
        out += _not_counted_of_megatron(plan)
    return tuple(out)


def _not_counted_of_dora(plan: Plan) -> list[str]:
    """DoRA is counted as peft runs it on whole weights; experts and joined matrices of other libraries have no magnitudes."""
    out = []
    if plan.formats.autocast or (plan.lora is not None and plan.lora.base_dtype in QUANTISED):
        out.append("lora.method: DoRA's norms under autocast, or of quantised weights, are not counted")
    if plan.framework not in PEFT:
        out.append(f"lora.method: DoRA is counted as peft runs it; {plan.framework} has its own")
    return out


def _not_counted_of_operations(plan: Plan) -> list[str]:
    """What a list of operations does not say enough for."""
    out, degrees = [], plan.degrees
    if plan.checkpointing != "none":
        out.append("checkpointing.mode: which operations of a plain network are run again is not counted; trace the model instead")
    if plan.lora:
        out.append("lora: adapters of a plain network are not counted")
    if max(degrees.tensor, degrees.pipeline, degrees.context, degrees.expert) > 1:
        out.append("parallelism: a plain network is counted whole on each rank")
    return out


def _not_counted_of_megatron(plan: Plan) -> list[str]:
    out: list[str] = []
    block = plan.architecture.block
    if not profile_of("megatron").models(block):
        out.append(f"model: Megatron-LM's own modules of the block {block!r} are not counted; figures are those of huggingface's")
    if plan.offload_optimizer:
        out.append("offload.optimizer: what a hybrid optimizer keeps on the GPU is not counted")
    return out
