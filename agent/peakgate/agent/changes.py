"""What one sample brought."""

from __future__ import annotations

from dataclasses import dataclass, field

from peakgate.agent.peaks import ACCOUNTING, JobEvent, PeakRow


@dataclass(slots=True)
class Changes:
    """Rows to write, jobs that ended."""

    rows: list[PeakRow] = field(default_factory=list)
    events: list[JobEvent] = field(default_factory=list)

    @property
    def are_urgent(self) -> bool:
        """Whether something began or ended, so that it is sent at once: the service waits for the end of all that it knows of."""
        return bool(self.events) or any(row.ended or _begins(row) for row in self.rows)

    def add(self, later: Changes) -> None:
        """Takes in what a later sample brought."""
        self.rows += later.rows
        self.events += later.events


def _begins(row: PeakRow) -> bool:
    """Whether it is the first row of a predicted job on a GPU."""
    return row.key.pid == 0 and row.samples == 1 and row.key.source != ACCOUNTING and bool(row.key.prediction)
