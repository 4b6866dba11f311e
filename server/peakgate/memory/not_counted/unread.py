"""What a reader of launch files found and no field of the job can say."""

from __future__ import annotations

from collections.abc import Iterator

from peakgate.memory.job import Job
from peakgate.memory.plan import Plan


def of_unread(job: Job, _plan: Plan | None = None) -> Iterator[str]:
    """A sentence for each thing, with the reader's own words and place."""
    yield from (f"unread: {what}" for what in job.unread)
