"""A job document held against what the submission asks of the scheduler: the scheduler's word on cards and counts is the last."""

from __future__ import annotations

from peakgate.hooks.slurm.cards import Card
from peakgate.hooks.slurm.submission import Submission
from peakgate.v1.training_job_pb2 import TrainingJob


def on_request(job: TrainingJob, submission: Submission, card: Card | None) -> TrainingJob:
    """The job on the cards that are asked for; a world as large as the cards it was made for grows and shrinks with them."""
    fitted = TrainingJob.FromString(job.SerializeToString())
    if card is not None:
        _set_card(fitted, card)
    total, each = submission.gpu_count, submission.gpus_per_node
    if total is None:
        return fitted
    parallelism, before = fitted.parallelism, job.gpu.count
    if parallelism.HasField("world_size") and before and parallelism.world_size == before != total.count:
        fitted.parallelism.world_size = total.count
    fitted.gpu.count = total.count
    if each is not None:
        fitted.node.gpus = each.count
    return fitted


def _set_card(job: TrainingJob, card: Card) -> None:
    """A name as it stands is left with the bytes that were stated beside it when they say the same."""
    if card.name:
        job.gpu.type = card.name
    else:
        job.gpu.ClearField("type")
    if card.memory_bytes:
        job.gpu.memory_bytes = card.memory_bytes
    else:
        job.gpu.ClearField("memory_bytes")


def is_as_asked(job: TrainingJob, fitted: TrainingJob) -> bool:
    """Whether the document was made for the cards that are asked for."""
    return job.SerializeToString(deterministic=True) == fitted.SerializeToString(deterministic=True)
