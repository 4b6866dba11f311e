"""What of a training method cannot be counted: each reason names the field that decides."""

from __future__ import annotations

from collections.abc import Iterator

from peakgate.memory.capacity import capacity_of
from peakgate.memory.job import Job
from peakgate.memory.methods.decide import described_models, method_of
from peakgate.memory.methods.engine import is_colocated
from peakgate.memory.plan import Plan

TRAINERS = ("huggingface", "deepspeed")
"""Frameworks whose jobs run TRL's trainers."""


OWN_CHECKPOINTS = ("megatron", "colossalai")
"""Frameworks with checkpoint formats of their own."""


def of_method(job: Job, plan: Plan) -> Iterator[str]:
    """What the method does that is not counted."""
    row, name = method_of(job), job.method.name
    if row.loss and plan.framework not in TRAINERS:
        yield f"method.name: {name} is counted as TRL runs it; the loss of {plan.framework} is its own"
    if row.loss and (plan.architecture.encoder or plan.architecture.network or plan.architecture.traits.get("inputs") == "pictures"):
        yield f"method.name: {name} is counted for decoders alone"
    if row.loss and plan.degrees.pipeline * plan.degrees.context * plan.degrees.tensor > 1:
        yield f"method.name: the loss of {name} is counted whole on each rank, without tensor, pipeline and context parallelism"
    if plan.companions and plan.degrees.pipeline > 1:
        yield "method: a second model is counted whole, not by stages"
    if plan.loss == "tiled" and not row.tiles:
        yield f"loss.implementation: a loss of {name} without whole logits is counted as that of dpo"
    yield from _of_models(job)
    if name == "ppo":
        yield "method.name: ppo: rollouts, and the critic's own pass, are not counted; its states are"
    yield from _of_generation(job)


def _of_models(job: Job) -> Iterator[str]:
    row = method_of(job)
    for role in row.models:
        if getattr(job.method, role) is None:
            yield f"method.{role}: {job.method.name} keeps one, and its model is not stated"
    for role, described in described_models(job):
        if described.architecture is None or described.architecture.network is not None:
            yield f"method.{role}: nothing is counted of a model without dimensions"
        yield from (f"method.{role}: {reason}" for reason in described.undecided)
        if role not in row.models and row.loss != "ppo":
            yield f"method.{role}: its weights are counted, its pass beside {job.method.name or 'sft'} is not"


def _of_generation(job: Job) -> Iterator[str]:
    generation, row = job.method.generation, method_of(job)
    if row.rolls_out and generation is None:
        yield "method.generation: it is not stated where answers are generated; give none, separate, or colocated with its memory_fraction"
    if is_colocated(generation) and capacity_of(job) is None:
        yield "method.generation.memory_fraction: a share of a card that the job does not name (gpu.type)"


def of_phases(job: Job, plan: Plan) -> Iterator[str]:
    """What of evaluation, saving and frozen parts is not counted."""
    if job.frozen and plan.architecture.network:
        yield "frozen: which operations of a plain network are not trained is not counted; trace the model instead"
    if plan.frozen.layers and plan.checkpoint_every > 1 and plan.checkpointing == "full":
        yield "frozen: a checkpoint that spans trained and frozen layers is counted as two"
    if plan.evaluation_batch and plan.architecture.network:
        yield "evaluate: a plain network's evaluation is not counted"
    if plan.evaluation_batch and plan.engine_bytes and plan.engine_sleeps:
        yield "evaluate: whether a sleeping engine wakes up for the evaluation is not known"
    if job.save.full_state_dict and plan.framework in OWN_CHECKPOINTS:
        yield f"save.full_state_dict: how {plan.framework} gathers a model is not counted"
    if job.save.full_state_dict and plan.degrees.tensor * plan.degrees.pipeline > 1:
        yield "save.full_state_dict: gathering over tensor and pipeline parallel ranks is not counted"
