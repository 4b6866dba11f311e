"""One finished job attempt: what was predicted for its worst GPU, and between which bounds its need lies."""

from __future__ import annotations

import math
from dataclasses import dataclass

from peakgate.calibration.prior import GIGABYTE
from peakgate.calibration.subject import Subject


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """One job attempt, joined to its prediction by id: the largest of its GPUs, so that a wide job counts once.

    The need, the smallest card on which the step completes, is known to lie between `lower_bytes` (live blocks and what lies outside the
    allocator) and `upper_bytes` (the device peak, which includes what the allocator only cached). `upper_bytes` is None when the attempt
    ran out of memory or died before its second step: then nothing is known but that the need is at least `lower_bytes`. `finished_at`
    and `received_at` (infinite: unknown) are in seconds since the epoch. `config` is a digest of the job: a user's many runs of one job
    are few facts. `has_statistics` says that the allocator's statistics were there, so that `lower_bytes` is what was allocated. `released`
    says that a person has looked at it and vouches for it: its size and its user keep it out no longer.
    """

    prediction: str
    subject: Subject
    lower_bytes: int
    upper_bytes: int | None
    finished_at: float
    config: str = ""
    received_at: float = math.inf
    has_statistics: bool = False
    released: bool = False

    @property
    def exact(self) -> bool:
        """Whether the need is known, and not only a lower bound."""
        return self.upper_bytes is not None

    @property
    def order(self) -> tuple[float, str]:
        """Rows are learned in this order, whatever order they arrive in."""
        return self.finished_at, self.prediction

    @property
    def need_bytes(self) -> float:
        """The best figure for the need; the lower bound itself when there is no upper one.

        A device peak is compared with the predicted device peak, never with the requirement: the allocator keeps what it may give back,
        and a label that includes it doubles the false rejections (20 % of jobs with at most 15 % surplus: 8 % to 19 %). The relative
        error carries over to the requirement, inside the known interval.
        """
        subject = self.subject
        return need_between(self.lower_bytes, self.upper_bytes, required_bytes=subject.required_bytes, device_bytes=subject.device_bytes)

    @property
    def residual(self) -> float:
        """GB of the need beyond what the memory model counts; a lower bound of it when the row is not exact."""
        return self.need_bytes / GIGABYTE - self.subject.counted

    @property
    def fills_the_card(self) -> bool:
        """Whether the attempt ran out of a card that was nearly all its own."""
        return not self.exact and bool(self.subject.card_bytes) and self.lower_bytes >= EXCLUSIVE_CARD_RATIO * self.subject.card_bytes


def need_between(lower_bytes: int, upper_bytes: int | None, *, required_bytes: int, device_bytes: int) -> float:
    """The need of an attempt that was seen between these ends, by what was predicted of it: see `Observation.need_bytes`."""
    if upper_bytes is None:
        return float(lower_bytes)
    carried_over = required_bytes * upper_bytes / device_bytes
    return min(max(carried_over, float(lower_bytes)), float(upper_bytes))


EXCLUSIVE_CARD_RATIO = 0.9
"""An out-of-memory with at least this much of the card in use was the job's own: then it needs the whole card or more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of an observation: learned, or kept out with a reason word and a line for a person."""

    learned: bool
    reason: str = ""
    message: str = ""
