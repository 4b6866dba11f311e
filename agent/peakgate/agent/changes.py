"""What one sample brought."""

from __future__ import annotations

from dataclasses import dataclass, field

from peakgate.agent.peaks import JobEvent, PeakRow


@dataclass(slots=True)
class Changes:
    """Rows to write, jobs that ended."""

    rows: list[PeakRow] = field(default_factory=list)
    events: list[JobEvent] = field(default_factory=list)

    @property
    def are_urgent(self) -> bool:
        """Whether something ended, so that it is sent at once."""
        return bool(self.events) or any(row.ended for row in self.rows)
