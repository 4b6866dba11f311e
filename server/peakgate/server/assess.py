"""One job's figures held against its card: prediction, calibrated bound, usable bytes. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace

from peakgate.calibration import Bound, Snapshot, Subject
from peakgate.calibration.trust import SAFE_COVERAGE
from peakgate.memory.job import Job
from peakgate.memory.prediction import JobError, Prediction
from peakgate.server.memory import Capacity, Changes, MemoryModel
from peakgate.server.policy import Policy
from peakgate.server.subjects import framework_key, group_key, scaled, subject_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Assessment:
    """The figures of one job in bytes. `usable_bytes` is 0 when no GPU is stated, `host_memory_bytes` when a node's RAM is unknown."""

    prediction: Prediction
    subject: Subject
    capacity: Capacity | None
    usable_bytes: int
    bound_bytes: int
    coverage: float
    """Probability with which the bound covers the need."""
    observations: int
    oom_probability: float
    clamped: bool = False
    """Whether the residual met its limit, so that the coverage is not promised."""
    distrust: tuple[str, ...] = ()
    """Why the calibration was not trusted and the bound is the wide one."""
    host_memory_bytes: int = 0
    offloaded: tuple[str, ...] = ()
    """Ledger categories that the job moves to a node's RAM."""

    @property
    def decided(self) -> bool:
        """Whether the figures are enough for a verdict."""
        return self.capacity is not None and not self.prediction.undecided

    @property
    def fits(self) -> bool:
        """Whether the bound is known to stay within the card, and what is offloaded within a node's RAM as far as that is known."""
        return self.decided and self.card_fits and self.host_fits

    @property
    def card_fits(self) -> bool:
        """Whether the bound stays within the card."""
        return self.bound_bytes <= self.usable_bytes

    @property
    def host_fits(self) -> bool:
        """Whether what is offloaded stays within a node's RAM; an unknown RAM is no reason against a job."""
        return not self.host_memory_bytes or self.prediction.host_bytes <= self.host_memory_bytes

    @property
    def states_fit(self) -> bool:
        """Whether the model states alone stay within the card."""
        return self.prediction.states_bytes <= self.usable_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Assessor:
    """Assesses jobs under one snapshot and one policy: the same arguments give the same answer.

    `user` is whose jobs they are, when the calibration learned something of them; `told` are reasons for distrust that the service counts.
    """

    memory: MemoryModel
    snapshot: Snapshot
    policy: Policy
    user: str = ""
    told: tuple[str, ...] = ()
    shadow: Snapshot | None = None
    """A calibration that is tried beside the other one, and that no figure rests on."""

    def assess(self, job: Job, *, replay: bool = False) -> Assessment:
        """The job's figures. Raises JobError when it cannot be judged."""
        prediction = self.memory.replayed(job) if replay else self.memory.predict(job)
        capacity = self.memory.capacity_of(job)
        usable_bytes = max(0, capacity.usable_bytes - self.policy.operator_reserve_bytes) if capacity is not None else 0
        subject = subject_of(prediction, job, capacity, user=self.user)
        coverage, bound = self.bound(subject)
        return Assessment(
            prediction=prediction,
            subject=subject,
            capacity=capacity,
            usable_bytes=usable_bytes,
            bound_bytes=bound.bound_bytes,
            coverage=coverage,
            observations=bound.observations,
            oom_probability=self.snapshot.oom_probability(subject, usable_bytes=usable_bytes) if capacity is not None else 0.0,
            clamped=bound.clamped,
            distrust=bound.distrust,
            host_memory_bytes=job.node.host_memory_bytes or 0,
            offloaded=_offloaded(job),
        )

    def fits_by_both(self, assessment: Assessment) -> tuple[bool, bool] | None:
        """Whether a job's bound stays within its card, and whether the shadow's would; None when there is no shadow, or no verdict."""
        if self.shadow is None or not assessment.decided:
            return None
        bound = self.bound(assessment.subject, self.shadow)[1]
        return assessment.card_fits, bound.bound_bytes <= assessment.usable_bytes

    def bound(self, subject: Subject, by: Snapshot | None = None) -> tuple[float, Bound]:
        """The bound and its coverage: the policy's, a careful one where the calibration is unsure, at least 99 % where it is not trusted.

        How old its newest facts are is told from the newest end that it knows, and not from the clock: equal jobs get equal answers.
        """
        snapshot = by if by is not None else self.snapshot
        coverage = self.policy.coverage
        if not subject.is_textbook and snapshot.is_unsure(subject):
            coverage = max(coverage, self.policy.careful_coverage)
        bound = snapshot.trusted_bound(subject, coverage=coverage, told=self.told)
        return max(coverage, SAFE_COVERAGE) if bound.distrust else coverage, bound

    def largest_requirement(self, kind: str, *, job: Job, like: Subject, usable_bytes: int) -> int:
        """The largest requirement whose bound stays within `usable_bytes`, of a job like one that was assessed, of another kind.

        `kind` is a prediction's group. The activations and states grow with the requirement; the bound rises with it. A plan may
        differ in more than its size: it is assessed by itself before it is offered.
        """
        capacity = self.memory.capacity_of(job)
        subject = replace(like, framework=framework_key(kind, job), group=group_key(kind, job, capacity))
        low, high = -1, usable_bytes + 1
        while high - low > 1:
            middle = (low + high) // 2
            bound = self.bound(scaled(subject, required_bytes=middle))[1]
            low, high = (middle, high) if bound.bound_bytes <= usable_bytes else (low, middle)
        return low

    def changed(self, job: Job, changes: Changes) -> Assessment | None:
        """The figures of the job with `changes`; None when that is no legal job."""
        try:
            return self.assess(self.memory.with_changes(job, changes))
        except JobError:
            return None


def _offloaded(job: Job) -> tuple[str, ...]:
    stated = (
        ("optimizer_states", job.offload.optimizer),
        ("parameters", job.offload.parameters),
        ("activations", job.offload.activations),
    )
    return tuple(category for category, place in stated if place not in (None, "none"))
