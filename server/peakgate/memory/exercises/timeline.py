"""Exercise 4: one step in time with a checkpoint every k layers (Lesson 6, section 3, "Checkpoint every k layers")."""

from __future__ import annotations

from dataclasses import dataclass

from peakgate.memory.absurd import LARGEST
from peakgate.memory.change import with_changes
from peakgate.memory.exercises.lesson import activations_at_peak, plan_of
from peakgate.memory.job import Job
from peakgate.memory.meter import Meter, exact
from peakgate.memory.pipeline import stages
from peakgate.memory.profiles import profile_of
from peakgate.memory.step import run


@dataclass(frozen=True, slots=True)
class Moment:
    """The memory of the GPU, model states included, from one change to the next."""

    phase: str
    bytes: int


class Watch(Meter):
    """A meter that writes down every change."""

    def __init__(self, ignored: frozenset[str]) -> None:
        super().__init__(exact, ignored)
        self.moments: list[Moment] = []

    def add(self, nbytes: int, block: int, category: str, stream: str = "") -> int:
        """Counts an allocation."""
        number = super().add(nbytes, block, category, stream)
        self._write()
        return number

    def sub(self, nbytes: int, block: int, category: str, number: int, stream: str = "") -> None:
        """Counts a free."""
        super().sub(nbytes, block, category, number, stream)
        self._write()

    def _write(self) -> None:
        moment = Moment(self.phase, self.live)
        if self.moments[-1:] != [moment]:
            self.moments.append(moment)


def step_timeline(job: Job, k: int | None = None) -> tuple[Moment, ...]:
    """Every change of one step in order, each layer walked; `k`: layers that share a checkpoint (None: as the job says)."""
    plan = plan_of(job if k is None else every(job, k))
    watch = Watch(profile_of(plan.profile).ignored)
    _, _, states, _ = run(plan, stages(plan.degrees, plan.architecture.dims["L"], plan.accumulation)[0], watch, each=True)
    return tuple(Moment(moment.phase, states.resident + moment.bytes) for moment in watch.moments)


def activation_peak(job: Job, k: int) -> int:
    """Bytes of checkpoints and rebuilt layers at the highest moment of the step."""
    return activations_at_peak(every(job, k))


def best_k(job: Job) -> int:
    """The k with the lowest peak; of equal ones the smallest."""
    most = min(plan_of(job).architecture.dims["L"], LARGEST["checkpointing.every"])
    return min(range(1, most + 1), key=lambda k: activation_peak(job, k))


def every(job: Job, k: int) -> Job:
    """The job with a checkpoint every k layers."""
    return with_changes(job, (("checkpointing.mode", "full"), ("checkpointing.every", k)))
