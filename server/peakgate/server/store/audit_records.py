"""What an audit of the margin is told by a store. Times are microseconds since the epoch, sizes bytes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditWindow:
    """Attempts that ended in [since, until), of groups whose names begin with `group`."""

    since_us: int
    until_us: int
    group: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditRow:
    """An attempt that was learned from, and its prediction. `body` is empty where the attempt was compared with its prediction as it is."""

    group: str
    verdict: str
    required_bytes: int
    bound_bytes: int
    total_bytes: int
    answer: bytes
    kind: str
    reason: str
    source: str
    predicted_bytes: int
    lower_bytes: int
    upper_bytes: int | None
    finished_us: int
    body: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AlarmRow:
    """A version that was made at a drift alarm."""

    created_us: int
    version: str
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditCounts:
    """What SQL counted, by group."""

    rows: int = 0
    """Attempts that were learned from."""
    rejections: dict[str, int] = field(default_factory=dict)
    """Predictions that were rejections."""
    kept_out: dict[tuple[str, str, str], int] = field(default_factory=dict)
    """Attempts by (group, reason, verdict of their prediction)."""
    tries: dict[tuple[str, str], int] = field(default_factory=dict)
    """Granted tries by (group, state of the prediction)."""


class Audit(Protocol):
    """One window of a store."""

    def counts(self) -> AuditCounts:
        """What needs no look at single attempts."""

    def rows(self) -> Iterator[AuditRow]:
        """Every attempt that was learned from, in no order."""

    def quarantined(self) -> Iterator[tuple[str, str]]:
        """(group, what the calibration was told) of every attempt that was kept out as its user's."""

    def alarms(self) -> list[AlarmRow]:
        """Drift alarms, the oldest first."""


class NoAudit:
    """Of a store that keeps nothing."""

    def counts(self) -> AuditCounts:
        """None."""
        return AuditCounts()

    def rows(self) -> Iterator[AuditRow]:
        """None."""
        return iter(())

    def quarantined(self) -> Iterator[tuple[str, str]]:
        """None."""
        return iter(())

    def alarms(self) -> list[AlarmRow]:
        """None."""
        return []
