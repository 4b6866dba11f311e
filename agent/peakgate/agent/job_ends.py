"""What the end of a job on this node is called: the agent sees processes leave, and of some ends it knows why."""

from __future__ import annotations

from peakgate.agent.owner import Owner
from peakgate.agent.peaks import Attempt, JobEvent


class JobEnds:
    """Remembers of the attempts that still live what their end will be called; without anything, `finished`."""

    def __init__(self) -> None:
        self._cut_off: set[Attempt] = set()
        self._ran_out: set[Attempt] = set()

    def cut_off(self, attempt: Attempt) -> None:
        """A GPU was lost under it."""
        self._cut_off.add(attempt)

    def ran_out(self, attempt: Attempt) -> None:
        """The last that one of its helpers told was an out-of-memory error."""
        self._ran_out.add(attempt)

    def event(self, owner: Owner, time: float) -> JobEvent | None:
        """The end of the owner's attempt; None for one without a prediction, which nobody waits for."""
        word = "failed" if owner.attempt in self._cut_off else "oom" if owner.attempt in self._ran_out else "finished"
        self._cut_off.discard(owner.attempt)
        self._ran_out.discard(owner.attempt)
        if not owner.prediction:
            return None
        return JobEvent(cluster=owner.cluster, job=owner.job, restart=owner.restart, prediction=owner.prediction, event=word, time=time)
