"""The memory model's one entry: a job in, the peaks of its worst GPU out."""

from __future__ import annotations

from dataclasses import replace

from peakgate.memory.bare import states_only
from peakgate.memory.capacity import capability_of
from peakgate.memory.check import check, world_of
from peakgate.memory.compose import compose
from peakgate.memory.job import Job
from peakgate.memory.lengths import lengths_of
from peakgate.memory.model import describe
from peakgate.memory.pipeline import distinct, stages
from peakgate.memory.prediction import Prediction
from peakgate.memory.resolve import resolve
from peakgate.memory.runtime import workspace_bytes
from peakgate.memory.traced.predict import predict_profile


def predict(job: Job, *, exact: bool = False) -> Prediction:
    """Point figures for the worst rank, in bytes. `exact`: reserved and required from a replay of every allocation.

    Raises JobError naming every bad field.
    """
    check(job)
    if job.model.profile is not None:
        return predict_profile(job, world_of(job))
    described = describe(job.model)
    world = world_of(job)
    if described.architecture is None or not job.batch.micro_batch_size or not lengths_of(job, described.architecture).sequence:
        return states_only(job, described, world)
    resolved = resolve(job, described.architecture, world)
    plan = replace(resolved.plan, workspace_bytes=workspace_bytes(capability_of(job)), capability=capability_of(job))
    # The events of a plain network are few, and how a graph's own pool fragments follows no ratio: both are replayed always.
    exact = exact or described.architecture.network is not None or plan.cuda_graphs != "none"
    candidates = distinct(stages(plan.degrees, plan.architecture.dims["L"], plan.accumulation))
    return max(
        (compose(plan, stage, resolved, described, exact=exact) for stage in candidates),
        key=lambda prediction: prediction.allocated_bytes,
    )
