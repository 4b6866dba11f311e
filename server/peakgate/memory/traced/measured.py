"""What a job states otherwise than the real run whose snapshot is its model, or what the snapshot cannot confirm."""

from __future__ import annotations

from peakgate.memory.job import Job
from peakgate.memory.recipes import RECIPES
from peakgate.memory.traced.read import Measured, Profile

OF_THE_RUN = "it is part of the run that the snapshot shows; leave it out of the job"


def contradictions_of_run(job: Job, profile: Profile, measured: Measured, world: int) -> tuple[str, ...]:
    """A snapshot does not say how its run was started: what the job states must have been stated of the run as well."""
    pairs = {
        "batch.micro_batch_size": (job.batch.micro_batch_size, profile.batch_size),
        "batch.gradient_accumulation_steps": (job.batch.gradient_accumulation_steps, profile.accumulation),
        "optimizer.name": (job.optimizer.name, profile.optimizer),
        "optimizer.implementation": (job.optimizer.implementation, profile.implementation),
        "precision.recipe": (job.precision.recipe, profile.dtype),
        "parallelism.world_size": (world if world > 1 else None, measured.world),
    }
    failed = ["model.profile: the run ran out of memory, and needs more than its snapshot shows"] if measured.failed else []
    out = failed + [f"{path}: {said} is stated, {_was(run)}" for path, (said, run) in pairs.items() if said and said != run]
    stated = {
        "batch.sequence_length": job.batch.sequence_length,
        "lora": job.lora,
        "checkpointing.mode": job.checkpointing.mode,
        "attention.implementation": job.attention.implementation,
        "parallelism.sharding": job.parallelism.sharding,
        "method.name": job.method.name not in (None, "pretrain", "sft"),
        "offload": any((job.offload.parameters, job.offload.optimizer, job.offload.activations)),
        "frozen, evaluate, save": job.frozen or job.evaluate.micro_batch_size or job.save.full_state_dict,
    }
    return (*out, *(f"{path}: {OF_THE_RUN}" for path, said in stated.items() if said))


def _was(run: object) -> str:
    return f"the run had {run}" if run else "and the snapshot does not say it: name it to `peakgate probe`"


def recipe_dtype(job: Job) -> str | None:
    """The format that a recipe's weights have; autocast is not traced."""
    recipe = job.precision.recipe
    if recipe is None:
        return None
    return recipe if RECIPES[recipe].autocast else RECIPES[recipe].parameters
