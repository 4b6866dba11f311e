"""The memory model's one entry: a job in, the peaks of its worst GPU out."""

from __future__ import annotations

from dataclasses import replace

from peakgate.memory.bare import states_only
from peakgate.memory.capacity import capability_of
from peakgate.memory.check import check, world_of
from peakgate.memory.compose import compose, rank_of
from peakgate.memory.counts import counted
from peakgate.memory.job import Job
from peakgate.memory.lengths import lengths_of
from peakgate.memory.model import describe
from peakgate.memory.pipeline import distinct, stages
from peakgate.memory.prediction import Prediction
from peakgate.memory.resolve import resolve
from peakgate.memory.runtime import context_bytes, workspace_bytes
from peakgate.memory.step import walk
from peakgate.memory.structures import structure_of
from peakgate.memory.traced.predict import predict_profile


def predict(job: Job, *, exact: bool = False) -> Prediction:
    """Point figures for the worst rank, in bytes. `exact`: reserved and required from a replay of every allocation.

    Raises JobError naming every bad field.
    """
    structure = None if exact or job.framework.cuda_graphs not in (None, "none") else structure_of(job)
    found = structure.at(job) if structure is not None else None
    if found is not None:
        return found
    check(job)
    if job.model.profile is not None:
        return predict_profile(job, world_of(job))
    described = describe(job.model)
    world = world_of(job)
    if described.architecture is None or not job.batch.micro_batch_size or not lengths_of(job, described.architecture).sequence:
        return states_only(job, described, world)
    resolved = resolve(job, described.architecture, world)
    capability = capability_of(job)
    plan = replace(
        resolved.plan,
        workspace_bytes=workspace_bytes(capability),
        context_bytes=context_bytes(job.framework, capability),
        capability=capability,
    )
    # The events of a plain network are few, and how a graph's own pool fragments follows no ratio: both are replayed always.
    exact = exact or described.architecture.network is not None or plan.cuda_graphs != "none"
    walks = [(stage, walk(plan, stage)) for stage in distinct(stages(plan.degrees, plan.architecture.dims["L"], plan.accumulation))]
    ranks = [rank_of(plan, stage, walked.states, resolved, described) for stage, walked in walks]
    if structure is not None:
        structure.walked(job, described.architecture, ranks)
    predictions = [compose(rank, counted(plan, stage, walked), exact=exact) for rank, (stage, walked) in zip(ranks, walks, strict=True)]
    return max(predictions, key=lambda each: each.allocated_bytes)
