"""What a person is shown of each group: the margin of a typical job, and how far needs lay from predictions. Pure."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from statistics import median, median_low

from peakgate.calibration import Observation, Snapshot, Subject

ROWS = 9
"""Newest exact rows of a group that are kept: enough for a median, and a thousand groups take half a megabyte."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSummary:
    """The margin over the requirement of a typical job, and the median of needed over predicted."""

    group: str
    observations: int
    margin_ratio: float
    median_ratio: float


class Groups:
    """The newest exact rows of each group, as (subject, needed over predicted)."""

    def __init__(self) -> None:
        self._rows: dict[str, deque[tuple[Subject, float]]] = {}

    def see(self, observation: Observation) -> None:
        """Takes a row that was learned."""
        if observation.exact:
            subject = replace(observation.subject, user="", version="")  # what is typical is nobody's own
            ratio = observation.need_bytes / subject.required_bytes
            self._rows.setdefault(subject.group, deque(maxlen=ROWS)).append((subject, ratio))

    def summaries(self, snapshot: Snapshot, *, coverage: float) -> tuple[GroupSummary, ...]:
        """Every group, by name."""
        return tuple(_summary(group, self._rows[group], snapshot, coverage) for group in sorted(self._rows))

    def state(self) -> dict[str, list[object]]:
        """Everything, as JSON can hold it: of each group what its rows share, then its rows."""
        return {group: [rows[-1][0].framework, *([*_numbers(subject), ratio] for subject, ratio in rows)] for group, rows in self._sorted()}

    def _sorted(self) -> list[tuple[str, deque[tuple[Subject, float]]]]:
        return sorted(self._rows.items())

    @classmethod
    def from_state(cls, state: Mapping[str, list[object]]) -> Groups:
        """The groups whose `state` that was. Raises ValueError or TypeError for anything else."""
        groups = cls()
        for group, (framework, *rows) in state.items():
            kept: deque[tuple[Subject, float]] = deque(maxlen=ROWS)
            for row in rows:
                if not isinstance(row, list):
                    raise TypeError(f"a row of group {group} has a wrong type")
                *numbers, ratio = row
                kept.append((_subject(group, str(framework), numbers), float(ratio)))
            groups._rows[group] = kept
        return groups


def groups_json(groups: Iterable[GroupSummary]) -> str:
    """Groups for the list of versions."""
    return json.dumps([asdict(group) for group in groups])


def _summary(group: str, rows: deque[tuple[Subject, float]], snapshot: Snapshot, coverage: float) -> GroupSummary:
    typical = median_low(subject.required_bytes for subject, _ in rows)
    subject = next(subject for subject, _ in rows if subject.required_bytes == typical)
    return GroupSummary(
        group=group,
        observations=snapshot.observations(subject),
        margin_ratio=snapshot.trusted_bound(subject, coverage=coverage).bound_bytes / typical - 1,
        median_ratio=median(ratio for _, ratio in rows),
    )


def _numbers(subject: Subject) -> list[int]:
    sizes = subject.card_bytes, subject.required_bytes, subject.device_bytes
    return [*sizes, subject.runtime_bytes, subject.activation_bytes, subject.state_bytes]


def _subject(group: str, framework: str, numbers: list[int]) -> Subject:
    card, required, device, runtime, activations, states = numbers
    return Subject(
        group=group,
        framework=framework,
        card_bytes=card,
        required_bytes=required,
        device_bytes=device,
        runtime_bytes=runtime,
        activation_bytes=activations,
        state_bytes=states,
    )
