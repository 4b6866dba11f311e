"""An attempt of a history as a policy meets it: predicted by the present memory model, with what is known of its end. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum, auto

from peakgate.calibration import Observation, Subject
from peakgate.calibration.gate import CLOCK_SKEW_SECONDS, FUTURE_DATED, INTERVAL_INVALID, VALUE_INVALID, judge_size, judge_values
from peakgate.calibration.observation import EXCLUSIVE_CARD_RATIO
from peakgate.memory.prediction import JobError
from peakgate.server.clock import MICROSECONDS, from_timestamp
from peakgate.server.convert import job_from_message
from peakgate.server.errors import PeakgateError, from_job_error
from peakgate.server.gpu_figures import LARGEST_CACHE_RATIO
from peakgate.server.lengths import AtLength, at_length
from peakgate.server.memory import MemoryModel
from peakgate.server.subjects import subject_of
from peakgate.v1.calibration_simulation_pb2 import PastAttempt

OUTCOMES = ("finished", "oom", "failed", "cancelled")

UNDECIDED = "UNDECIDED"
"""The job does not say enough for a verdict, now as then."""
NOTHING_SEEN = "NOTHING_SEEN"
"""Neither how it ended nor a figure is stated."""
REPEATED = "REPEATED"
"""The same attempt stands in the history twice."""

SAME_CARD_RATIO = 0.98
"""Two totals that are nearer than this are of one kind of card: drivers differ in what they report by a percent."""


class Truth(Enum):
    """Whether the job fits the card that it asked for, as its end showed."""

    FITS = auto()
    DIES = auto()
    UNKNOWN = auto()


class RefusedError(Exception):
    """An attempt that cannot be used."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """`observation` is None where nothing can be learned of it; `need_bytes` where its need is not known. Times in seconds."""

    name: str
    subject: Subject
    usable_bytes: int
    truth: Truth
    observation: Observation | None
    need_bytes: float | None
    submitted_at: float
    finished_at: float
    draw: float
    """In [0, 1): below the share of overrides the job runs although it was rejected. The same under every policy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Predicted:
    subject: Subject
    usable_bytes: int
    at_length: AtLength | None


class PastReader:
    """Predicts each job once, and refuses what comes twice."""

    def __init__(self, memory: MemoryModel, *, reserve_bytes: int, now: float) -> None:
        self._memory = memory
        self._reserve_bytes = reserve_bytes
        self._now = now
        self._predicted: dict[bytes, _Predicted | RefusedError] = {}
        self._lengths: dict[tuple[bytes, int], Subject | None] = {}
        self._seen: set[bytes] = set()

    def read(self, attempt: PastAttempt) -> Past:
        """What a policy meets. Raises RefusedError."""
        submitted_at, finished_at = self._times(attempt)
        _check_figures(attempt)
        job_bytes = attempt.job.SerializeToString(deterministic=True)
        digest = hashlib.sha256(job_bytes).digest()
        predicted = self._cached(digest, job_bytes, attempt)
        identity = self._once(attempt)
        subject = replace(predicted.subject, user=attempt.user)
        observation = self._observation(attempt, predicted, subject, digest, identity.hex(), finished_at)
        known = observation if observation is not None and observation.exact and not judge_size(observation) else None
        return Past(
            name=identity.hex(),
            subject=subject,
            usable_bytes=predicted.usable_bytes,
            truth=_truth(attempt, subject, predicted.usable_bytes),
            observation=observation,
            need_bytes=known.need_bytes if known is not None else None,
            submitted_at=submitted_at,
            finished_at=finished_at,
            draw=int.from_bytes(identity[:8]) / 2.0**64,
        )

    def _times(self, attempt: PastAttempt) -> tuple[float, float]:
        if not attempt.HasField("finish_time"):
            raise RefusedError(VALUE_INVALID, "finished_at is missing: state when the attempt ended")
        finished_at = from_timestamp(attempt.finish_time) / MICROSECONDS
        submitted_at = from_timestamp(attempt.submit_time) / MICROSECONDS if attempt.HasField("submit_time") else finished_at
        if min(submitted_at, finished_at) < 0:
            raise RefusedError(VALUE_INVALID, "submitted_at or finished_at lies before 1970")
        if finished_at > self._now + CLOCK_SKEW_SECONDS:
            raise RefusedError(FUTURE_DATED, "finished_at lies ahead of the clock: is it in seconds?")
        if submitted_at > finished_at:
            raise RefusedError(INTERVAL_INVALID, "submitted_at comes after finished_at")
        return submitted_at, finished_at

    def _once(self, attempt: PastAttempt) -> bytes:
        told = PastAttempt()
        told.CopyFrom(attempt)
        told.ClearField("line")
        identity = hashlib.sha256(told.SerializeToString(deterministic=True)).digest()
        if identity in self._seen:
            raise RefusedError(REPEATED, "the same attempt stands in the history already")
        self._seen.add(identity)
        return identity

    def _cached(self, digest: bytes, job_bytes: bytes, attempt: PastAttempt) -> _Predicted:
        if digest not in self._predicted:
            try:
                self._predicted[digest] = self._predict(attempt, job_bytes)
            except RefusedError as error:
                self._predicted[digest] = error
        found = self._predicted[digest]
        if isinstance(found, RefusedError):
            raise RefusedError(found.reason, found.message)
        return found

    def _predict(self, attempt: PastAttempt, job_bytes: bytes) -> _Predicted:
        try:
            job = job_from_message(attempt.job)
            prediction, capacity = self._memory.predict(job), self._memory.capacity_of(job)
            lengths = at_length(self._memory, job_bytes)
        except (JobError, PeakgateError) as error:
            known = from_job_error(error) if isinstance(error, JobError) else error
            raise RefusedError(known.reason, known.message) from error
        if capacity is None:
            raise RefusedError(UNDECIDED, "the job names no card (gpu.type or gpu.memory_bytes), so there is no verdict")
        if prediction.undecided:
            raise RefusedError(UNDECIDED, prediction.undecided[0])
        usable_bytes = max(0, capacity.usable_bytes - self._reserve_bytes)
        return _Predicted(subject=subject_of(prediction, job, capacity), usable_bytes=usable_bytes, at_length=lengths)

    def _observation(
        self, attempt: PastAttempt, predicted: _Predicted, subject: Subject, digest: bytes, name: str, finished_at: float
    ) -> Observation | None:
        lower_bytes, upper_bytes = _ends(attempt, subject.card_bytes)
        if predicted.at_length is not None and upper_bytes is not None:
            compared = self._at_length(digest, attempt.longest_sequence, predicted.at_length)
            upper_bytes = upper_bytes if compared is not None else None  # a cap: it may have been shorter
            subject = replace(compared, user=attempt.user) if compared is not None else subject
        observation = Observation(
            prediction=name,
            subject=replace(subject, card_bytes=attempt.gpu_total_bytes or subject.card_bytes),
            lower_bytes=lower_bytes,
            upper_bytes=upper_bytes,
            finished_at=finished_at,
            config=digest.hex(),
            has_statistics=attempt.has_statistics,
        )
        return None if judge_values(observation) else observation

    def _at_length(self, digest: bytes, tokens: int, lengths: Callable[[int], Subject | None]) -> Subject | None:
        key = digest, tokens
        if key not in self._lengths:
            self._lengths[key] = lengths(tokens)
        return self._lengths[key]


def _check_figures(attempt: PastAttempt) -> None:
    names = ("observed_bytes", "lower_bytes", "upper_bytes", "longest_sequence", "gpu_total_bytes")
    for name in names:
        if getattr(attempt, name) < 0:
            raise RefusedError(VALUE_INVALID, f"{name} is {getattr(attempt, name)}; it must not be negative")
    if attempt.upper_bytes and attempt.upper_bytes < attempt.lower_bytes:
        raise RefusedError(INTERVAL_INVALID, f"upper_bytes {attempt.upper_bytes} is below lower_bytes {attempt.lower_bytes}")
    if attempt.outcome and attempt.outcome not in OUTCOMES:
        raise RefusedError(VALUE_INVALID, f"outcome is {attempt.outcome[:64]!r}; allowed are {', '.join(OUTCOMES)}")
    if not (attempt.outcome or attempt.lower_bytes or attempt.upper_bytes):
        raise RefusedError(NOTHING_SEEN, "nothing was seen: state lower_bytes and upper_bytes, or observed_bytes with an outcome")


def _ends(attempt: PastAttempt, card_bytes: int) -> tuple[int, int | None]:
    """Between which ends the need lies, by what is stated; 0 and None where nothing is known.

    As of the service's own figures: what nvidia-smi shows includes the allocator's cache, and an out-of-memory of a job that had nearly
    the whole card needs all of it or more.
    """
    observed_bytes, card_bytes = attempt.observed_bytes, attempt.gpu_total_bytes or card_bytes
    if attempt.upper_bytes:
        return attempt.lower_bytes or int(attempt.upper_bytes / LARGEST_CACHE_RATIO), attempt.upper_bytes
    if attempt.outcome == "oom":
        lower_bytes = max(attempt.lower_bytes, observed_bytes)
        return (max(card_bytes, lower_bytes) if not lower_bytes or lower_bytes >= EXCLUSIVE_CARD_RATIO * card_bytes else lower_bytes), None
    if attempt.lower_bytes:
        return attempt.lower_bytes, None
    if attempt.outcome == "finished" and observed_bytes:
        return int(observed_bytes / LARGEST_CACHE_RATIO), observed_bytes
    return observed_bytes, None


def _truth(attempt: PastAttempt, subject: Subject, usable_bytes: int) -> Truth:
    """Whoever finished on such a card fits it; an out-of-memory of the job's own, or a need above the card, does not."""
    lower_bytes, upper_bytes = _ends(attempt, subject.card_bytes)
    ran_on = attempt.gpu_total_bytes or subject.card_bytes
    if attempt.outcome in ("finished", "") and (attempt.outcome or upper_bytes) and ran_on * SAME_CARD_RATIO <= subject.card_bytes:
        return Truth.FITS
    if upper_bytes is not None and upper_bytes <= usable_bytes:
        return Truth.FITS
    if lower_bytes > usable_bytes and (attempt.outcome == "oom" or ran_on * SAME_CARD_RATIO > subject.card_bytes or not attempt.outcome):
        return Truth.DIES
    return Truth.UNKNOWN
