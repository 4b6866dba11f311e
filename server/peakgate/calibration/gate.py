"""The sanity gate: observations that cannot be about the job that was predicted are kept out, each with a reason.

At a coverage of 99 % one bad row in a hundred owns the quantile, so the gate stands before it (conformal prediction under
contamination: Clarkson et al., arXiv 2407.07700).
"""

from __future__ import annotations

import math

from peakgate.calibration.observation import Observation, Outcome
from peakgate.calibration.prior import GIGABYTE

VALUE_INVALID = "VALUE_INVALID"
"""A figure is not a finite, positive number, or a name is missing."""
INTERVAL_INVALID = "INTERVAL_INVALID"
"""The upper bound lies below the lower one."""
FAR_BELOW_PREDICTION = "FAR_BELOW_PREDICTION"
"""The job that ran was smaller than the job that was predicted."""
FAR_ABOVE_PREDICTION = "FAR_ABOVE_PREDICTION"
"""The job that ran was larger than the job that was predicted, or the GPU was shared."""
DUPLICATE = "DUPLICATE"
"""The prediction has been learned from already, and this row says nothing new."""

# An exact peak below 0.75 of the prediction, or above 1.5 of it plus 3 GB, was a mismatch of job and prediction in every
# simulated world; 0 to 2.3 of 6000 honest rows are kept out by these limits.
LOWEST_RATIO = 0.75
HIGHEST_RATIO = 1.5
HIGHEST_EXTRA_BYTES = 3 * GIGABYTE


def judge(observation: Observation) -> Outcome:
    """Says whether an observation may be learned from; it looks at nothing else than the observation."""
    return _judge_values(observation) or _judge_size(observation) or Outcome(learned=True)


def _judge_values(observation: Observation) -> Outcome | None:
    figures = {
        "required_bytes": observation.subject.required_bytes,
        "device_bytes": observation.subject.device_bytes,
        "lower_bytes": observation.lower_bytes,
    }
    if observation.upper_bytes is not None:
        figures["upper_bytes"] = observation.upper_bytes
    for name, value in figures.items():
        if not math.isfinite(value) or value <= 0:
            return _refused(VALUE_INVALID, f"{name} is {value}; it must be a positive number of bytes")
    if not math.isfinite(observation.finished_at):
        return _refused(VALUE_INVALID, f"finished_at is {observation.finished_at}; it must be seconds since the epoch")
    if not observation.prediction or not observation.subject.group:
        return _refused(VALUE_INVALID, "prediction and group must be named")
    if observation.upper_bytes is not None and observation.upper_bytes < observation.lower_bytes:
        return _refused(INTERVAL_INVALID, f"upper_bytes {observation.upper_bytes} is below lower_bytes {observation.lower_bytes}")
    return None


def _judge_size(observation: Observation) -> Outcome | None:
    need, required = observation.need_bytes, observation.subject.required_bytes
    figures = f"a need of {need / GIGABYTE:.2f} GB was observed where {required / GIGABYTE:.2f} GB was predicted"
    if observation.upper_bytes is not None and need < LOWEST_RATIO * required:
        return _refused(FAR_BELOW_PREDICTION, f"{figures}: is the document that of the job that ran?")
    if need > HIGHEST_RATIO * required + HIGHEST_EXTRA_BYTES:
        return _refused(FAR_ABOVE_PREDICTION, f"{figures}: is the document that of the job that ran, alone on its GPU?")
    return None


def _refused(reason: str, message: str) -> Outcome:
    return Outcome(learned=False, reason=reason, message=message)
