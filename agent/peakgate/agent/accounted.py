"""Rows of the driver's accounting: the exact peak of a process, where its start shows that it is that process.

The driver answers by pid, and a pid is used again: an answer counts only when it began after the process did (/proc) and before the
process was first seen on the GPU.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import replace

from peakgate.agent.peaks import ACCOUNTING, Attempt, Flag, PeakKey, PeakRow
from peakgate.agent.record import Record
from peakgate.agent.samples import Accounted

SLACK_SECONDS = 2.0
"""Clock ticks, the second in which the clock was read, and a clock that time synchronisation moves a little."""
MAX_JOBS = 4096
"""Jobs that are remembered; the oldest give way."""
_TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")


def start_time_of(start_ticks: int) -> float:
    """Seconds since the epoch at which a process began whose /proc/PID/stat says so many ticks since boot."""
    booted_at = time.time() - time.clock_gettime(time.CLOCK_BOOTTIME)
    return booted_at + start_ticks / _TICKS_A_SECOND


class Crowds:
    """Jobs that had several processes on a GPU at once: the driver's maxima of those cannot be put together to one of the job."""

    def __init__(self) -> None:
        self._jobs: dict[tuple[str, Attempt], None] = {}

    def note(self, gpu_uuid: str, attempt: Attempt) -> None:
        """This job has several now."""
        self._jobs[gpu_uuid, attempt] = None
        if len(self._jobs) > MAX_JOBS:
            del self._jobs[next(iter(self._jobs))]

    def has(self, key: PeakKey) -> bool:
        """Whether the job of this row ever had several."""
        return (key.gpu_uuid, key.attempt) in self._jobs


def is_same_process(accounted: Accounted, record: Record, process_start_time: float) -> bool:
    """Whether the driver speaks of the process of this record. One whose start /proc did not show cannot be told."""
    if record.key.pid != accounted.pid or record.key.pid_start_ticks == 0:
        return False
    return process_start_time - SLACK_SECONDS <= accounted.start_time <= record.first_time + SLACK_SECONDS


def accounting_rows(accounted: Accounted, record: Record, *, is_alone: bool, now: float) -> Iterator[PeakRow]:
    """The process's row, and the job's on this GPU when it never had a second process there."""
    key, flags = record.key, record.row().flags & ~Flag.FLUCTUATING  # the driver misses no peak
    if record.ended and record.quality.is_full(accounted.peak_bytes):
        flags |= Flag.CENSORED
    row = replace(
        record.row(), peak_bytes=accounted.peak_bytes, last_time=max(record.last_time, now), samples=1, gaps=0, longest_gap_seconds=0.0
    )
    yield replace(row, key=replace(key, source=ACCOUNTING), flags=flags)
    if key.job and is_alone:
        yield replace(row, key=replace(key, source=ACCOUNTING, pid=0, pid_start_ticks=0), flags=flags)
