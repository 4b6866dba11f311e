"""The trainings of a job attempt: two processes of one attempt are of one training, or of several.

An observation belongs to one training with its own prediction. Where several share a prediction, side by side or one after the other, the
attempt's figures are those of none of them, and its rows say so. One training is: the ranks below one launcher, also when it starts them
anew; the tasks of one Slurm step; a program and what it starts while any of it is on a GPU. What one process does one after the other, and
what one program that is no shell does side by side in its own session, cannot be told apart from outside.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

from peakgate.agent.launch import Place
from peakgate.agent.peaks import Attempt
from peakgate.agent.proc import ProcessId

MAX_ATTEMPTS = 4096
"""Attempts that are remembered, so that a later training of the same attempt is known as such; the longest unseen go first."""
MAX_TRAININGS = 256
"""Trainings that are remembered of one attempt; after the first, the oldest go first."""


@dataclass(slots=True)
class _Training:
    """`roots` are the programs by task of the step, `live` the processes that are on a GPU now."""

    name: str
    step: str
    roots: dict[str, ProcessId] = field(default_factory=dict)
    launchers: set[ProcessId] = field(default_factory=set)
    live: set[ProcessId] = field(default_factory=set)
    latest_start_ticks: int = 0

    def takes(self, process: ProcessId, place: Place) -> bool:
        """Whether the process is a part: of the same program, and not begun after the last part had gone, unless by its launcher."""
        if self.step != place.step or self.roots.get(place.task, place.root) != place.root:
            return False
        return bool(self.live) or place.launcher in self.launchers or process.start_ticks <= self.latest_start_ticks

    def add(self, process: ProcessId, place: Place) -> None:
        """Takes the process in."""
        self.roots[place.task] = place.root
        self.launchers.add(place.launcher)
        self.live.add(process)
        self.latest_start_ticks = max(self.latest_start_ticks, process.start_ticks)


@dataclass(slots=True)
class Trainings:
    """Remembers which trainings each attempt has had on this node since the agent started."""

    _known: OrderedDict[Attempt, list[_Training]] = field(default_factory=OrderedDict)
    _several: set[Attempt] = field(default_factory=set)
    _new: list[Attempt] = field(default_factory=list)

    def join(self, attempt: Attempt, process: ProcessId, place: Place) -> str:
        """The name of the training that the process belongs to: empty for the first of an attempt."""
        trainings = self._known.setdefault(attempt, [])
        self._known.move_to_end(attempt)
        training = next((training for training in trainings if training.takes(process, place)), None)
        if training is None:
            training = _Training(_name(trainings, process, place), place.step)
            trainings.append(training)
            del trainings[1 : 1 + max(0, len(trainings) - MAX_TRAININGS)]
            self._forget_oldest()
        if len(trainings) > 1:
            self._note_several(attempt)
        training.add(process, place)
        return training.name

    def leave(self, attempt: Attempt, process: ProcessId) -> None:
        """The process has left its last GPU."""
        for training in self._known.get(attempt, ()):
            training.live.discard(process)

    def contradict(self, attempt: Attempt) -> None:
        """A process of the attempt names another prediction than its scheduler does: which one was trained is not known."""
        self._known.setdefault(attempt, [])
        self._note_several(attempt)
        self._forget_oldest()

    def are_several(self, attempt: Attempt) -> bool:
        """Whether the attempt's figures are not those of one training."""
        return attempt in self._several

    def newly_several(self) -> list[Attempt]:
        """The attempts that became several since this was last asked."""
        new, self._new = self._new, []
        return new

    def _note_several(self, attempt: Attempt) -> None:
        if attempt not in self._several:
            self._several.add(attempt)
            self._new.append(attempt)

    def _forget_oldest(self) -> None:
        while len(self._known) > MAX_ATTEMPTS:
            attempt, _ = self._known.popitem(last=False)
            self._several.discard(attempt)


def _name(trainings: list[_Training], process: ProcessId, place: Place) -> str:
    """Empty for the first; the step for the first in another step; else with the pid of its first process."""
    if not trainings:
        return ""
    is_new_step = place.step and place.step not in {training.step for training in trainings}
    return place.step if is_new_step else f"{place.step}:{process.pid}".removeprefix(":")
