"""What is not counted of a model."""

from __future__ import annotations

from collections.abc import Iterator

from peakgate.memory.job import Job
from peakgate.memory.model import Described, stand_in_note
from peakgate.memory.plan import Plan
from peakgate.memory.profiles import profile_of


def of_description(plan: Plan, described: Described) -> Iterator[str]:
    """What its description leaves open; no family stands in where the framework has modules of its own for the block."""
    arch = plan.architecture
    own = arch.block in profile_of(plan.profile).roles
    yield from (note for note in described.undecided if not own or note != stand_in_note(arch.block, arch.stand_in))


def of_model(_: Job, plan: Plan) -> Iterator[str]:
    """A network of operations, and blocks that the framework has no kernels or no modules of."""
    block, profile = plan.architecture.block, profile_of(plan.profile)
    if plan.architecture.network:
        yield from _of_operations(plan)
    if profile.blocks and block not in profile.blocks:
        yield f"model: {plan.framework} has no kernels of the block {block!r}; figures are partly huggingface's"
    if plan.framework == "megatron" and not profile_of("megatron").models(block):
        yield f"model: Megatron-LM's own modules of the block {block!r} are not counted; figures are those of huggingface's"


def _of_operations(plan: Plan) -> Iterator[str]:
    """What a list of operations does not say enough for."""
    degrees = plan.degrees
    if plan.checkpointing != "none":
        yield "checkpointing.mode: which operations of a plain network are run again is not counted; trace the model instead"
    if plan.lora:
        yield "lora: adapters of a plain network are not counted"
    if max(degrees.tensor, degrees.pipeline, degrees.context, degrees.expert) > 1:
        yield "parallelism: a plain network is counted whole on each rank"
