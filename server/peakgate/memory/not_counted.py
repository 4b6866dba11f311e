"""What a job states that this version does not count."""

from __future__ import annotations

from peakgate.memory.job import Job
from peakgate.memory.plan import Plan
from peakgate.memory.profiles import PROFILES, profile_of
from peakgate.memory.uncounted_placement import uncounted_placement


def not_counted(job: Job, plan: Plan) -> tuple[str, ...]:
    """What the job states that this version does not count: the answer is then UNDECIDED, never silently wrong."""
    method, profile, out = job.method, profile_of(plan.profile), []
    if plan.architecture.network:
        out += _not_counted_of_operations(plan)
    elif plan.framework not in PROFILES:
        out.append(f"framework.name: {plan.framework} has no kernel profile in this version; figures are those of huggingface")
    if method.name not in (None, "pretrain", "sft"):
        out.append(f"method.name: {method.name} keeps more than one model or batch, which this version does not count")
    if method.reference not in (None, "none") or method.critic or method.teacher or method.reward:
        out.append("method: a second resident model is not counted in this version")
    if profile.blocks and plan.architecture.block not in profile.blocks:
        out.append(f"model: {plan.framework} has no kernels of the block {plan.architecture.block!r}; figures are partly huggingface's")
    if plan.offload_parameters or (plan.offload_activations and (plan.checkpointing != "full" or plan.reentrant)):
        out.append("offload: parameters, and activations that are no checkpoints, are counted as if they stayed on the GPU")
    layers = profile.compiles_layers(plan)
    if (job.precision.compute == "float8" or job.precision.fp8) and not layers:
        out.append("precision: 8-bit products are counted as 16-bit ones")
    if plan.checkpointing == "memory-budget":
        out.append("checkpointing.mode: memory-budget is counted as none")
    own = plan.framework == "megatron"
    if job.checkpointing.modules and set(job.checkpointing.modules) != {"core_attn"} and not own:
        out.append("checkpointing.modules: only core_attn is counted")
    if (plan.compiled and not profile.compiled and not layers) or job.framework.cuda_graphs not in (None, "none"):
        out.append("framework: compiled kernels and CUDA graphs are not counted")
    if job.frozen or (job.evaluate.micro_batch_size or 0) > 0 or job.save.full_state_dict:
        out.append("frozen, evaluate and save are not counted")
    if job.lora and job.lora.method == "dora":
        out.append("lora.method: DoRA's norms of weights are not counted")
    if plan.lora and plan.lora.base_dtype == "int8":
        out.append("lora.base_dtype: products of 8-bit weights are counted as those of 4-bit ones")
    listed = own or profile.per_operation
    if plan.checkpointing == "selective" and plan.attention != "eager" and plan.profile != "textbook" and not listed:
        out.append("checkpointing.mode: selective recomputes only an eager attention core; a list of operations is counted as none")
    out += uncounted_placement(job, plan)
    if own:
        out += _not_counted_of_megatron(plan)
    return tuple(out)


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
