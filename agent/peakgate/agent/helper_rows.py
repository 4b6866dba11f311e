"""Rows of source `torch`: what the in-process helper has said of each process, until the process ends."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from peakgate.agent.helper_reports import HelperSample
from peakgate.agent.peaks import ALLOCATOR_FIGURES, HELPER, NO_FLAGS, Allocator, Flag, PeakKey, PeakRow, merged_phases
from peakgate.agent.proc import ProcessId
from peakgate.v1.allocator_report import ASYNC, AllocatorReport


@dataclass(slots=True)
class _Told:
    """The row so far; the steps at which the last out-of-memory error was told, None once the training has gone on after it."""

    row: PeakRow
    steps_at_oom: int | None = None


class HelperRows:
    """One a process and GPU. The figures are maxima: a report that comes twice or late changes nothing."""

    def __init__(self) -> None:
        self._told: dict[tuple[str, ProcessId], _Told] = {}

    def take(self, sample: HelperSample, key: PeakKey, *, uid: int, flags: Flag) -> list[PeakRow]:
        """The rows to write; none while nothing is held.

        `key` is that of the process's row, whatever its source; `flags` those of its owner.
        """
        key = replace(key, source=HELPER)
        place, report = (sample.gpu.uuid, sample.process), sample.report
        before = self._told.get(place)
        rows = []
        if before and before.row.key != key:  # another owner has been named: what was told so far was the first one's
            rows = [replace(before.row, ended=True)]
            before = None
        row = _row(sample, key, uid=uid, flags=flags)
        told = self._told[place] = _Told(_merged(before.row, row) if before else row, before.steps_at_oom if before else None)
        if report.ooms > (before.row.allocator.ooms if before else 0):
            told.steps_at_oom = report.steps_done
        elif told.steps_at_oom is not None and report.steps_done != told.steps_at_oom:
            told.steps_at_oom = None
        return [row for row in (*rows, told.row) if row.peak_bytes]

    def end(self, gpu_uuid: str, process: ProcessId, *, flags: Flag = NO_FLAGS) -> Iterator[PeakRow]:
        """The process has left the GPU: its last row, with the flags that its owner has come to have."""
        told = self._told.pop((gpu_uuid, process), None)
        if told and told.row.peak_bytes:
            yield replace(told.row, ended=True, flags=told.row.flags | flags)

    def cut_off(self, gpu_uuid: str) -> None:
        """The GPU is lost under its processes."""
        for place, told in self._told.items():
            if place[0] == gpu_uuid:
                told.row = replace(told.row, flags=told.row.flags | Flag.TRUNCATED)

    def ran_out(self, gpu_uuid: str, process: ProcessId) -> bool:
        """Whether the last that it told was an out-of-memory error with no step after it, as there is after one that was caught."""
        told = self._told.get((gpu_uuid, process))
        return told is not None and told.steps_at_oom is not None


def _row(sample: HelperSample, key: PeakKey, *, uid: int, flags: Flag) -> PeakRow:
    report = sample.report
    flags |= Flag.OOM if report.ooms else NO_FLAGS
    flags |= Flag.ASYNC_ALLOCATOR if report.backend == ASYNC else NO_FLAGS
    return PeakRow(
        key=key,
        gpu_name=sample.gpu.name,
        gpu_total_bytes=sample.gpu.total_bytes,
        peak_bytes=report.reserved_bytes,
        peak_time=sample.time,
        first_time=sample.time,
        last_time=sample.time,
        flags=flags,
        uid=uid,
        allocator=_allocator(report),
    )


def _allocator(report: AllocatorReport) -> Allocator:
    return Allocator(**{name: getattr(report, name) for name in ALLOCATOR_FIGURES}, phases=report.phases)


def _merged(one: PeakRow, other: PeakRow) -> PeakRow:
    """The maximum of both, as the spool and the service merge them."""
    higher = other if other.peak_bytes > one.peak_bytes else one
    return replace(
        other,
        peak_bytes=higher.peak_bytes,
        peak_time=higher.peak_time,
        first_time=min(one.first_time, other.first_time),
        last_time=max(one.last_time, other.last_time),
        samples=one.samples + 1,
        flags=one.flags | other.flags,
        allocator=_merged_allocators(one.allocator, other.allocator),
    )


def _merged_allocators(one: Allocator, other: Allocator) -> Allocator:
    figures = {name: max(getattr(one, name), getattr(other, name)) for name in ALLOCATOR_FIGURES}
    return Allocator(**figures, phases=merged_phases((*one.phases, *other.phases)))
