"""A job whose sequence length is a cap, predicted again for the longest sequence that was really there."""

from __future__ import annotations

from collections.abc import Callable

from peakgate.calibration import Subject
from peakgate.memory.job import Job
from peakgate.memory.prediction import JobError
from peakgate.server.convert import job_from_message
from peakgate.server.memory import MemoryModel
from peakgate.server.subjects import subject_of
from peakgate.v1.training_job_pb2 import TrainingJob

AtLength = Callable[[int], Subject | None]
"""A job at another length in tokens; None when it cannot be told from the length alone."""


def at_length(memory: MemoryModel, job_body: bytes) -> AtLength | None:
    """A stored job by length; None when its stated length is the data's own."""
    job = job_from_message(TrainingJob.FromString(job_body))
    batch = job.batch
    has_own_longest = batch.sequence_lengths is not None and batch.sequence_lengths.max is not None
    if batch.sequence_length_is != "cap" or has_own_longest:
        return None
    return lambda tokens: _predicted(memory, job, tokens)


def _predicted(memory: MemoryModel, job: Job, tokens: int) -> Subject | None:
    """None too where a rank sees only a part of the sequence, or where the decoder's own length decides as well."""
    if tokens <= 0 or (job.parallelism.context or 1) > 1 or job.batch.target_length is not None:
        return None
    changed = memory.with_changes(job, (("batch.sequence_length", tokens), ("batch.sequence_length_is", "exact")))
    try:
        return subject_of(memory.predict(changed), changed, memory.capacity_of(changed))
    except JobError:
        return None  # such as a length that the plan cannot divide
