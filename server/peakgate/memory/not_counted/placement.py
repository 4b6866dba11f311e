"""What is not counted of parallelism."""

from __future__ import annotations

from collections.abc import Iterator

from peakgate.memory.choices import HUGGING_FACE
from peakgate.memory.job import Job
from peakgate.memory.pipeline import ZERO_BUBBLE
from peakgate.memory.plan import Plan
from peakgate.memory.profiles import profile_of
from peakgate.memory.reach import attends_across_ranks
from peakgate.memory.roles import roles_of


def of_placement(job: Job, plan: Plan) -> Iterator[str]:
    """Schedules, stages, exchanges and buffers of their own."""
    degrees, block, profile = plan.degrees, plan.architecture.block, profile_of(plan.profile)
    if degrees.pipeline > 1 and degrees.schedule == ZERO_BUBBLE and not _splits(plan):
        yield "parallelism.pipeline_schedule: zero-bubble is counted for torch's schedule alone, of layers neither compiled nor rebuilt"
    if plan.architecture.encoder and degrees.pipeline > 1:
        yield "parallelism.pipeline: what an encoder sends to the stages of a decoder is not counted"
    if plan.framework == "megatron" and plan.architecture.encoder and degrees.sequence_parallel and degrees.tensor > 1:
        yield "parallelism.sequence_parallel: what the stacks of an encoder-decoder gather of one another is not counted"
    if degrees.context > 1 and not attends_across_ranks(plan):
        yield "parallelism.context: buffers of context parallelism are counted for flash attention alone"
    if degrees.expert > 1 and block not in profile.roles:
        yield f"parallelism.expert: how {plan.framework} exchanges tokens among the experts of {block!r} is not counted"
    if degrees.tensor > 1 and profile.gathers_inputs and (plan.compiled or _routes(plan)):
        yield "parallelism.tensor: torchtitan's compiled or routed layers are not counted on several tensor parallel ranks"
    stated = job.model.transformer
    if stated is not None and stated.mtp_layers and not _predicts_further(plan):
        yield "model.transformer.mtp_layers: multi-token prediction is not counted in such a job"
    if plan.framework == "megatron" and degrees.sharding not in ("none", "ddp", "zero1"):
        yield f"parallelism.sharding: buffers of Megatron-LM's {degrees.sharding} are not counted"


def _routes(plan: Plan) -> bool:
    """Whether the model has experts."""
    return plan.architecture.dims["E"] > 0


def _splits(plan: Plan) -> bool:
    """Whether the backward pass is split as torch's zero-bubble schedule does it."""
    return profile_of(plan.profile).splits_backward and not plan.compiled and plan.checkpointing == "none"


def _predicts_further(plan: Plan) -> bool:
    """transformers leaves the layers of further tokens out when it loads a model; Megatron-LM's are counted on one tensor parallel rank."""
    if plan.framework != "megatron":
        return plan.framework in HUGGING_FACE
    simple = plan.degrees.tensor == 1 and plan.checkpointing != "full"
    return simple and roles_of(plan, plan.architecture.pattern[-1])["embed"] in profile_of(plan.profile).further_tokens
