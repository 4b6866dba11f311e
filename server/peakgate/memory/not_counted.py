"""What a job states that this version does not count."""

from __future__ import annotations

from peakgate.memory.cuda_graphs import problem as graph_problem
from peakgate.memory.job import Fp8, Job
from peakgate.memory.offload import on_host
from peakgate.memory.plan import Plan
from peakgate.memory.profiles import PROFILES, profile_of
from peakgate.memory.profiles.liger import unknown_kernels
from peakgate.memory.profiles.megatron_fp8 import problem


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
    if plan.offload_parameters and "parameters" not in on_host(plan):
        out.append("offload.parameters: only the shards of FSDP and of ZeRO stage 3 are counted in the host's memory")
    if plan.offload_activations and (plan.checkpointing != "full" or plan.reentrant):
        out.append("offload.activations: those that are no checkpoints are counted as if they stayed on the GPU")
    layers = plan.compiled and plan.checkpointing in profile.compiled_layers and plan.architecture.block in profile.roles
    out += _not_counted_of_8_bits(job, plan, compiled=layers)
    if plan.checkpointing == "memory-budget":
        out.append("checkpointing.mode: memory-budget is counted as none")
    if profile.transformers and unknown_kernels(plan):
        out.append(f"framework.fused_kernels: {', '.join(unknown_kernels(plan))} of the block {plan.architecture.block!r} are not counted")
    if not profile.transformers and plan.fused_kernels - profile.fused:
        out.append(f"framework.fused_kernels: {', '.join(sorted(plan.fused_kernels - profile.fused))} of {plan.framework} are not counted")
    if "fused_linear_cross_entropy" in plan.fused_kernels and plan.loss != "fused":
        out.append("framework.fused_kernels: fused_linear_cross_entropy and another loss.implementation cannot both be")
    if plan.framework == "colossalai" and plan.degrees.sharding not in ("none", "ddp"):
        out.append(f"parallelism.sharding: buffers of ColossalAI's {plan.degrees.sharding} are not counted")
    own = plan.framework == "megatron"
    wrapped = plan.checkpointing == "selective" and bool(plan.recomputed)
    if job.checkpointing.modules and set(job.checkpointing.modules) != {"core_attn"} and not own and not wrapped:
        out.append("checkpointing.modules: only core_attn and mlp of Hugging Face's models are counted")
    if plan.compiled and not profile.compiled and not layers:
        out.append("framework: compiled kernels are not counted")
    if graph_problem(plan):
        out.append(f"framework.cuda_graphs: CUDA graphs {graph_problem(plan)}")
    if job.frozen or (job.evaluate.micro_batch_size or 0) > 0 or job.save.full_state_dict:
        out.append("frozen, evaluate and save are not counted")
    if job.lora and job.lora.method == "dora":
        out.append("lora.method: DoRA's norms of weights are not counted")
    if plan.lora and plan.lora.base_dtype == "int8":
        out.append("lora.base_dtype: products of 8-bit weights are counted as those of 4-bit ones")
    listed = own or profile.per_operation or wrapped
    if plan.checkpointing == "selective" and plan.attention != "eager" and plan.profile != "textbook" and not listed:
        out.append("checkpointing.mode: selective recomputes only an eager attention core; a list of operations is counted as none")
    if plan.architecture.encoder and plan.degrees.pipeline > 1:
        out.append("parallelism.pipeline: what an encoder sends to the stages of a decoder is not counted")
    if plan.degrees.context > 1 or (plan.degrees.expert > 1 and not own):
        out.append("parallelism: buffers of context and expert parallelism are not counted")
    if own:
        out += _not_counted_of_megatron(job, plan)
    return tuple(out)


TORCHAO = (None, "current")
"""Scaling of whole tensors, which torchao calls dynamic: its linear keeps its operands as they were (float8/float8_linear.py)."""


def _not_counted_of_8_bits(job: Job, plan: Plan, *, compiled: bool) -> list[str]:
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


def _not_counted_of_megatron(job: Job, plan: Plan) -> list[str]:
    out: list[str] = []
    block, transformer = plan.architecture.block, job.model.transformer
    if not profile_of("megatron").models(block):
        out.append(f"model: Megatron-LM's own modules of the block {block!r} are not counted; figures are those of huggingface's")
    if transformer is not None and transformer.mtp_layers:
        out.append("model.transformer.mtp_layers: multi-token prediction is not counted")
    if plan.degrees.sharding not in ("none", "ddp", "zero1"):
        out.append(f"parallelism.sharding: buffers of Megatron-LM's {plan.degrees.sharding} are not counted")
    if plan.degrees.pipeline > 1 and plan.degrees.schedule == "zero-bubble":
        out.append("parallelism.pipeline_schedule: zero-bubble is counted as 1f1b")
    if plan.offload_optimizer:
        out.append("offload.optimizer: what a hybrid optimizer keeps on the GPU is not counted")
    return out
