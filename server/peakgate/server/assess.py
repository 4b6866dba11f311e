"""One job's figures held against its card: prediction, calibrated bound, usable bytes. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from peakgate.calibration import Snapshot
from peakgate.memory.job import Job
from peakgate.memory.prediction import JobError, Prediction
from peakgate.server.memory import Capacity, Changes, MemoryModel
from peakgate.server.policy import Policy


@dataclass(frozen=True, slots=True, kw_only=True)
class Assessment:
    """The figures of one job in bytes. `usable_bytes` is 0 when no GPU is stated, `host_memory_bytes` when a node's RAM is unknown."""

    prediction: Prediction
    capacity: Capacity | None
    usable_bytes: int
    bound_bytes: int
    observations: int
    oom_probability: float
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
    """Assesses jobs under one snapshot and one policy: the same arguments give the same answer."""

    memory: MemoryModel
    snapshot: Snapshot
    policy: Policy

    def assess(self, job: Job, *, replay: bool = False) -> Assessment:
        """The job's figures. Raises JobError when it cannot be judged."""
        prediction = self.memory.replayed(job) if replay else self.memory.predict(job)
        capacity = self.memory.capacity_of(job)
        usable_bytes = max(0, capacity.usable_bytes - self.policy.operator_reserve_bytes) if capacity is not None else 0
        bound = self.snapshot.bound(group=prediction.group, required_bytes=prediction.required_bytes, coverage=self.policy.coverage)
        return Assessment(
            prediction=prediction,
            capacity=capacity,
            usable_bytes=usable_bytes,
            bound_bytes=bound.bound_bytes,
            observations=bound.observations,
            oom_probability=self._oom_probability(prediction, usable_bytes) if capacity is not None else 0.0,
            host_memory_bytes=job.node.host_memory_bytes or 0,
            offloaded=_offloaded(job),
        )

    def _oom_probability(self, prediction: Prediction, usable_bytes: int) -> float:
        return self.snapshot.oom_probability(group=prediction.group, required_bytes=prediction.required_bytes, usable_bytes=usable_bytes)

    def largest_requirement(self, group: str, *, usable_bytes: int) -> int:
        """The largest requirement of a group whose bound stays within `usable_bytes`; the bound rises with it."""
        low, high = -1, usable_bytes + 1
        while high - low > 1:
            middle = (low + high) // 2
            bound = self.snapshot.bound(group=group, required_bytes=middle, coverage=self.policy.coverage)
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
