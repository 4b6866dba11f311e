"""Recorded samples through the tracker, with what /proc and the attribution said then: the same rows as on the node."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from peakgate.agent.attribution import Attribution
from peakgate.agent.changes import Changes
from peakgate.agent.errors import UsageError
from peakgate.agent.jobs_folder import JobsFolder
from peakgate.agent.owner import Owner
from peakgate.agent.peaks import Attempt, JobEvent, PeakRow
from peakgate.agent.proc import ProcessId, ProcFolder
from peakgate.agent.samples import (
    Accounted,
    AccountingSample,
    DeviceSample,
    Gpu,
    GpuGone,
    GpuProcess,
    Kind,
    ProcessSample,
    ReadFailed,
    Sample,
    XidSample,
)
from peakgate.agent.tracker import Tracker

KINDS: Mapping[str, Callable[..., Sample]] = MappingProxyType(
    {kind.__name__: kind for kind in (AccountingSample, DeviceSample, GpuGone, ProcessSample, ReadFailed, XidSample)}
)


@dataclass(frozen=True, slots=True)
class Line:
    """A sample, and the facts of its moment by pid."""

    sample: Sample
    starts: Mapping[int, int]
    owners: Mapping[int, Owner]


class _RecordedProc(ProcFolder):
    """/proc as it was."""

    def __init__(self) -> None:
        super().__init__(root=Path("/nonexistent"))
        self.starts: dict[int, int] = {}

    def start_ticks(self, pid: int) -> int | None:
        """As /proc said at the last process list."""
        return self.starts.get(pid)


class _RecordedAttribution(Attribution):
    """The owners as they were."""

    def __init__(self, proc: ProcFolder) -> None:
        super().__init__(cluster="", proc=proc, jobs=JobsFolder(folder=Path("/nonexistent")))
        self.recorded: dict[int, Owner] = {}
        self.several: set[Attempt] = set()
        self._fresh: list[Attempt] = []

    def note_several(self, owners: Iterable[Owner]) -> None:
        """Only trainings after the first of an attempt have a step."""
        found = {owner.attempt for owner in owners if owner.step} - self.several
        self.several |= found
        self._fresh += sorted(found)

    def owners_on(self, gpu_uuid: str, processes: Iterable[ProcessId]) -> dict[ProcessId, Owner]:  # noqa: ARG002 (what was recorded is of all GPUs)
        """As they were recorded; a process of which nothing was is nobody's."""
        return {process: self.recorded.get(process.pid, Owner(cluster="")) for process in processes}

    def are_several(self, attempt: Attempt) -> bool:
        """Whether a training after the first was recorded."""
        return attempt in self.several

    def newly_several(self) -> list[Attempt]:
        """So that the rows of those before it are marked as well, as on the node."""
        fresh, self._fresh = self._fresh, []
        return fresh

    def forget(self, *, gpu_uuid: str, process: ProcessId) -> None:
        """Nothing was read."""


def replay(path: Path) -> tuple[list[PeakRow], list[JobEvent]]:
    """The rows as the agent would have sent them last, and the ends of jobs. Raises UsageError that names the line that is none."""
    proc = _RecordedProc()
    attribution = _RecordedAttribution(proc)
    tracker = Tracker(attribution=attribution, proc=proc, boot_id="replay")
    rows: dict[object, PeakRow] = {}
    events: list[JobEvent] = []
    for line in read_lines(path):
        if isinstance(line.sample, ProcessSample):
            proc.starts = dict(line.starts)
        attribution.recorded |= line.owners
        attribution.note_several(line.owners.values())
        changes: Changes = tracker.take(line.sample)
        rows |= {row.key: row for row in changes.rows}
        events += changes.events
    return list((rows | {row.key: row for row in tracker.everything()}).values()), events


def read_lines(path: Path) -> Iterator[Line]:
    """The recording. Raises UsageError."""
    try:
        with path.open(encoding="utf-8") as file:
            for number, text in enumerate(file, 1):
                yield _parsed(path, number, text)
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"the recording {path} cannot be read: {error}", remedy="Record one with peakgate agent --record FILE") from error


def _parsed(path: Path, number: int, text: str) -> Line:
    try:
        fields = json.loads(text)
        kind = fields.pop("kind")
        starts = {int(pid): int(ticks) for pid, ticks in fields.pop("starts", {}).items()}
        owners = {int(pid): Owner(**owner) for pid, owner in fields.pop("owners", {}).items()}
        return Line(KINDS[kind](**_with_parts(kind, **fields)), starts, owners)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        remedy = "The file must be one that this version recorded"
        raise UsageError(f"{path}, line {number}: {type(error).__name__}: {error}", remedy=remedy) from error


def _with_parts(kind: str, *, gpu: dict[str, Any], processes: list[dict[str, Any]] | None = None, **others: object) -> dict[str, object]:
    """The fields with their parts as objects; one that does not fit is a TypeError of the object's."""
    parts = others | {"gpu": Gpu(**gpu)}
    if processes is None:
        return parts
    if kind == AccountingSample.__name__:
        return parts | {"processes": tuple(Accounted(**one) for one in processes)}
    return parts | {"processes": tuple(GpuProcess(**one | {"kinds": Kind(one["kinds"])}) for one in processes)}
