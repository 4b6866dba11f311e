"""What the memory model says about a job. All sizes are bytes on the worst GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import overload


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerLine:
    """One part of the memory at the peak moment."""

    category: str
    item: str
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelinePoint:
    """The blocks allocated at one moment of a step in steady state."""

    phase: str
    label: str
    allocated_bytes: int


class Timeline(Sequence[TimelinePoint]):
    """The points of a timeline, made when they are first read."""

    def __init__(self, make: Callable[[], Iterable[TimelinePoint]] = tuple) -> None:
        self._make = make

    @cached_property
    def _points(self) -> tuple[TimelinePoint, ...]:
        return tuple(self._make())

    @overload
    def __getitem__(self, index: int) -> TimelinePoint: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[TimelinePoint]: ...

    def __getitem__(self, index: int | slice) -> TimelinePoint | Sequence[TimelinePoint]:
        """A point, or some."""
        return self._points[index]

    def __len__(self) -> int:
        """How many points."""
        return len(self._points)

    def __eq__(self, other: object) -> bool:
        """Whether the points are the same."""
        return isinstance(other, Sequence) and self._points == tuple(other)

    def __hash__(self) -> int:
        """By its points."""
        return hash(self._points)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prediction:
    """Point figures without a safety margin. `ledger` sums to `device_bytes`."""

    live_bytes: int
    allocated_bytes: int
    reserved_bytes: int
    device_bytes: int
    required_bytes: int
    host_bytes: int
    parameters: int
    trainable_parameters: int
    saved_activation_bytes_per_layer: int
    peak_phase: str
    phase_peaks: tuple[tuple[str, int], ...]
    """(phase, required bytes) in the order of the first step, for the first phase that does not fit."""
    pipeline_stage: int
    rank_reason: str
    ledger: tuple[LedgerLine, ...]
    timeline: Sequence[TimelinePoint]
    group: str
    """The calibration group: framework, sharding, precision."""
    undecided: tuple[str, ...] = ()
    """Why the figures are not enough for a verdict; empty when they are."""
    states_bytes: int = 0
    """Model states alone: what must fit whatever the undecided parts are."""
    assumptions: tuple[str, ...] = ()
    warnings: tuple[str, ...] = field(default=())


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A plan: field paths with their new values, and what it costs.

    `alters` are words for what it changes beside memory and time: numerics, objective, batch, gpus; `conditions` were not checked.
    """

    title: str
    changes: tuple[tuple[str, str | int | float | bool | tuple[str, ...]], ...]
    relative_step_time: float
    why: str
    alters: str = ""
    conditions: tuple[str, ...] = ()
    required_bytes: int = 0
    """What a card must have; 0: not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldError:
    """A field that cannot be judged: its path, and what to do."""

    field: str
    description: str


class JobError(Exception):
    """The job cannot be judged. `reason` is an ErrorInfo reason; every bad field is listed."""

    def __init__(self, reason: str, fields: tuple[FieldError, ...]) -> None:
        super().__init__("; ".join(f"{each.field}: {each.description}" for each in fields))
        self.reason = reason
        self.fields = fields
