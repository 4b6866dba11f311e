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
FUTURE_DATED = "FUTURE_DATED"
"""The attempt ends after it was received: taken in, it would make every later one out of order."""
ABOVE_CARD = "ABOVE_CARD"
"""More than the card holds: another unit, or another card."""
CARD_FULL = "CARD_FULL"
"""The card was full and the job alive: the allocator took what there was, which says nothing of the need."""
USER_QUARANTINED = "USER_QUARANTINED"
"""The user's jobs lie far from what they declare, and those of others do not."""
NO_RESIDUAL = "NO_RESIDUAL"
"""The textbook's accounting leaves the runtime out: there is nothing to learn for others."""
LABEL_WEAK = "LABEL_WEAK"
"""The row does not tell what was allocated, and the group has enough rows that do."""

KEPT_OUT = (
    VALUE_INVALID,
    INTERVAL_INVALID,
    FAR_BELOW_PREDICTION,
    FAR_ABOVE_PREDICTION,
    FUTURE_DATED,
    ABOVE_CARD,
    CARD_FULL,
    USER_QUARANTINED,
    NO_RESIDUAL,
    LABEL_WEAK,
)
"""Every reason of the gate. Part of the interface: words are only added."""

# Ratios of what the memory model counts: the runtime's prior may be wrong, and that is there to be learned. The limits leave room for
# honest tails (allocators were seen to waste up to 43 %: STAlloc, arXiv 2507.16274), and keep out a wrong document, another process,
# another unit.
LOWEST_RATIO = 0.75
HIGHEST_RATIO = 1.5
HIGHEST_EXTRA_BYTES = 3 * GIGABYTE

CLOCK_SKEW_SECONDS = 300.0
"""Two clocks may differ by so much (RFC 4120, §1.6: typically five minutes)."""
HIGHEST_CARD_RATIO = 1.002
"""More than one by rounding to MiB only, which is far below the 1.0486 of MB that are taken for MiB."""
FULL_CARD_RATIO = 0.985
"""From here on the allocator had filled the card with its cache: the peak says nothing about the need of a job that went on."""


def judge_values(observation: Observation) -> Outcome | None:
    """Refuses a row whose figures, time or names cannot be used at all."""
    return _judge_figures(observation) or _judge_time(observation) or _judge_names(observation)


def _judge_figures(observation: Observation) -> Outcome | None:
    figures = {
        "required_bytes": observation.subject.required_bytes,
        "device_bytes": observation.subject.device_bytes,
        "lower_bytes": observation.lower_bytes,
    }
    if observation.upper_bytes is not None:
        figures["upper_bytes"] = observation.upper_bytes
    for name, value in figures.items():
        if not math.isfinite(value) or value <= 0:
            return refused(VALUE_INVALID, f"{name} is {value}; it must be a positive number of bytes")
    if observation.upper_bytes is not None and observation.upper_bytes < observation.lower_bytes:
        return refused(INTERVAL_INVALID, f"upper_bytes {observation.upper_bytes} is below lower_bytes {observation.lower_bytes}")
    return None


def _judge_time(observation: Observation) -> Outcome | None:
    ended, received = observation.finished_at, observation.received_at
    if not math.isfinite(ended) or math.isnan(received):
        return refused(VALUE_INVALID, f"finished_at is {ended}, received_at {received}; they must be seconds since the epoch")
    if ended > received + CLOCK_SKEW_SECONDS:
        return refused(FUTURE_DATED, f"the attempt ends {ended - received:.0f} s after it was received; check the clocks")
    return None


def _judge_names(observation: Observation) -> Outcome | None:
    if not (observation.prediction and observation.subject.group):
        return refused(VALUE_INVALID, "prediction and group must be named")
    if observation.subject.is_textbook:
        return refused(NO_RESIDUAL, "the prediction is the textbook's, which leaves the runtime out")
    return None


def judge_size(observation: Observation) -> Outcome | None:
    """Refuses a row that cannot be about the job that was predicted; it looks at nothing else than the row."""
    return _judge_card(observation) or _judge_ratio(observation)


def _judge_card(observation: Observation) -> Outcome | None:
    card, peak = observation.subject.card_bytes, observation.upper_bytes or observation.lower_bytes
    figures = f"a peak of {peak / GIGABYTE:.2f} GB was seen on a card of {card / GIGABYTE:.2f} GB"
    if card and peak > HIGHEST_CARD_RATIO * card:
        return refused(ABOVE_CARD, f"{figures}: is the unit bytes, and the card the one that was predicted for?")
    if card and observation.exact and not observation.has_statistics and peak > FULL_CARD_RATIO * card:
        return refused(CARD_FULL, f"{figures}: the job's need cannot be told from the allocator's cache")
    return None


def _judge_ratio(observation: Observation) -> Outcome | None:
    need, subject = observation.need_bytes, observation.subject
    counted = subject.required_bytes - subject.runtime_bytes
    figures = f"a need of {need / GIGABYTE:.2f} GB was observed where {subject.required_bytes / GIGABYTE:.2f} GB was predicted"
    if observation.upper_bytes is not None and need < LOWEST_RATIO * counted:
        return refused(FAR_BELOW_PREDICTION, f"{figures}: is the document that of the job that ran?")
    if need > HIGHEST_RATIO * counted + HIGHEST_EXTRA_BYTES:
        return refused(FAR_ABOVE_PREDICTION, f"{figures}: is the document that of the job that ran, alone on its GPU?")
    return None


def refused(reason: str, message: str) -> Outcome:
    """A row that is kept out."""
    return Outcome(learned=False, reason=reason, message=message)
