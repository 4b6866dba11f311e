"""A history under one policy, in a closed loop: only what this policy lets run teaches it, and only after its end. Pure."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from peakgate.calibration import Bound, Calibrator, Observation, Snapshot, Subject
from peakgate.server.assess import Assessor
from peakgate.server.memory import MemoryModel
from peakgate.server.policy import Policy
from peakgate.server.simulation.past import Past, Truth
from peakgate.server.simulation.policies import Candidate

Stopped = Callable[[], bool]
"""Whether nobody waits for the result any more."""


class StoppedError(Exception):
    """Nobody waits for the result."""


@dataclass(slots=True, kw_only=True)
class Tally:
    """Jobs by what the policy did with them and what became of them."""

    admitted: dict[Truth, int] = field(default_factory=lambda: dict.fromkeys(Truth, 0))
    rejected: dict[Truth, int] = field(default_factory=lambda: dict.fromkeys(Truth, 0))
    unused_bytes: float = 0.0
    known_needs: int = 0
    learned: int = 0
    distrusted: int = 0

    def count(self, past: Past, *, bound_bytes: int, is_admitted: bool) -> None:
        """A job was judged."""
        (self.admitted if is_admitted else self.rejected)[past.truth] += 1
        if past.need_bytes is not None:
            self.known_needs += 1
            self.unused_bytes += bound_bytes - past.need_bytes

    def cost(self, *, oom_cost: float, rejection_cost: float) -> float:
        """What its mistakes cost."""
        return oom_cost * self.admitted[Truth.DIES] + rejection_cost * self.rejected[Truth.FITS]


class FixedMargin:
    """A part of the card is kept free above what is required."""

    def __init__(self, ratio: float) -> None:
        self._ratio = ratio

    def bound(self, subject: Subject) -> Bound:
        """The same margin for every job of a card."""
        bound_bytes = subject.required_bytes + round(self._ratio * subject.card_bytes)
        return Bound(bound_bytes=bound_bytes, observations=0, group=subject.group)

    def learn(self, observation: Observation) -> bool:  # noqa: ARG002 - it learns nothing
        """Never."""
        return False


class Calibrated:
    """A calibration of its own under a policy, from the prior on."""

    def __init__(self, memory: MemoryModel, policy: Policy) -> None:
        self._memory = memory
        self._policy = policy
        self._calibrator = Calibrator(epoch=memory.version)
        self._assessor = self._assessor_of(self._calibrator.snapshot())

    def bound(self, subject: Subject) -> Bound:
        """As the service would bound the job now."""
        snapshot = self._calibrator.snapshot()
        if snapshot is not self._assessor.snapshot:
            self._assessor = self._assessor_of(snapshot)
        return self._assessor.bound(subject)[1]

    def learn(self, observation: Observation) -> bool:
        """Whether it was taken in."""
        return self._calibrator.learn(observation).learned

    def _assessor_of(self, snapshot: Snapshot) -> Assessor:
        return Assessor(memory=self._memory, snapshot=snapshot, policy=self._policy)


def replay(
    history: Sequence[Past], candidate: Candidate, memory: MemoryModel, *, override_share: float, stopped: Stopped = lambda: False
) -> Tally:
    """What the policy would have done with the jobs, in the order of their submission. Raises StoppedError."""
    method = Calibrated(memory, candidate.policy) if candidate.policy is not None else FixedMargin(candidate.fixed_ratio)
    tally, running = Tally(), list[tuple[float, str, Observation]]()
    for past in history:
        if stopped():
            raise StoppedError
        while running and running[0][0] < past.submitted_at:
            tally.learned += method.learn(heapq.heappop(running)[2])
        bound = method.bound(past.subject)
        is_admitted = bound.bound_bytes <= past.usable_bytes
        tally.count(past, bound_bytes=bound.bound_bytes, is_admitted=is_admitted)
        tally.distrusted += bool(bound.distrust)
        if past.observation is not None and (is_admitted or past.draw < override_share):
            heapq.heappush(running, (past.finished_at, past.name, past.observation))
    return tally


def in_order(history: Sequence[Past]) -> list[Past]:
    """As they were submitted."""
    return sorted(history, key=lambda past: (past.submitted_at, past.finished_at, past.name))
