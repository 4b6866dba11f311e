"""What ended while no agent was there to see it: told at the next start, or the job would run for ever in everybody's eyes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from peakgate.agent.changes import Changes
from peakgate.agent.peaks import Attempt, Flag, JobEvent, PeakRow
from peakgate.agent.proc import ProcFolder


def ended_in_absence(rows: Iterable[PeakRow], *, proc: ProcFolder) -> Changes:
    """The ends of those of `rows`, which nobody has ended, whose processes are gone, and of the attempts that have no other.

    How high they went after the last look nobody knows, so the rows are TRUNCATED. The end is told at the time of the last look.
    """
    known = list(rows)
    processes = {row.key for row in known if row.key.pid}
    boot_id = proc.boot_id()
    living = {key for key in processes if key.boot_id == boot_id and proc.start_ticks(key.pid) == key.pid_start_ticks}
    trained = {(key.gpu_uuid, key.training) for key in living}
    gone = [row for row in known if (row.key not in living if row.key.pid else (row.key.gpu_uuid, row.key.training) not in trained)]
    lasting = {key.attempt for key in living}
    return Changes(
        rows=[replace(row, ended=True, flags=row.flags | Flag.TRUNCATED) for row in gone],
        events=_ends(row for row in gone if row.key.prediction and row.key.attempt not in lasting),
    )


def _ends(rows: Iterable[PeakRow]) -> list[JobEvent]:
    last: dict[Attempt, float] = {}
    for row in rows:
        last[row.key.attempt] = max(last.get(row.key.attempt, 0.0), row.last_time)
    return [
        JobEvent(cluster=cluster, job=job, restart=restart, prediction=prediction, event="finished", time=time)
        for (cluster, job, restart, prediction), time in last.items()
    ]
