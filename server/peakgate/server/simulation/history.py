"""A stored observation as an attempt of a history. Pure."""

from __future__ import annotations

from peakgate.calibration import Observation
from peakgate.calibration.gate import CARD_FULL
from peakgate.server.classing import OUT_OF_MEMORY
from peakgate.server.clock import to_timestamp
from peakgate.server.store.records import PastRow
from peakgate.server.subjects import observation_from
from peakgate.v1.calibration_simulation_pb2 import PastAttempt
from peakgate.v1.training_job_pb2 import TrainingJob

CAME_TO_ITS_END = frozenset({"NO_DEVICE_FIGURE", "AVERAGED", "LENGTH_UNKNOWN", CARD_FULL})
"""Reasons for which a need is not known although the job ended well: every rule for another end comes before theirs."""


def attempt_of(row: PastRow) -> PastAttempt:
    """What the calibration was told of it, with the job as it was submitted."""
    observation = observation_from(row.body) if row.body else None
    attempt = PastAttempt(
        job=TrainingJob.FromString(row.job_body),
        submit_time=to_timestamp(min(row.created_us, row.finished_us)),
        finish_time=to_timestamp(row.finished_us),
        outcome=_outcome(row.reason, observation),
        observed_bytes=row.observed_bytes,
        longest_sequence=row.longest_sequence,
        attempt=f"{row.prediction}/{row.job}/{row.restart}",
    )
    if observation is not None:
        attempt.user = observation.subject.user
        attempt.lower_bytes, attempt.upper_bytes = observation.lower_bytes, observation.upper_bytes or 0
        attempt.has_statistics = observation.has_statistics
    return attempt


def _outcome(reason: str, observation: Observation | None) -> str:
    """How it ended, as far as that decides whether it fits."""
    if reason in CAME_TO_ITS_END or (observation is not None and observation.exact):
        return "finished"
    return "oom" if reason == OUT_OF_MEMORY or (observation is not None and observation.fills_the_card) else "failed"
