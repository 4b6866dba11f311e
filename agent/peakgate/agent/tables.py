"""What the agent saw, as rows of text for a person."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from peakgate.agent.glance import Glance, SeenGpu
from peakgate.agent.peaks import JobEvent, PeakRow
from peakgate.agent.plain import plain
from peakgate.v1.plain import Plain

GLANCE_HEAD = ("gpu", "name", "in use", "pid", "memory", "exact peak", "job", "prediction")
PEAKS_HEAD = ("gpu", "job", "pid", "source", "peak", "last seen", "samples", "gaps", "flags", "prediction")
EVENTS_HEAD = ("job", "event", "time", "prediction")
_GIB = 1 << 30


def report(rows: Sequence[PeakRow], events: Sequence[JobEvent]) -> tuple[Plain, list[tuple[Sequence[str], list[tuple[str, ...]]]]]:
    """Peaks and job ends as JSON, and as tables with their heads."""
    tables: list[tuple[Sequence[str], list[tuple[str, ...]]]] = [(PEAKS_HEAD, list(peak_rows(rows)))]
    if events:
        tables.append((EVENTS_HEAD, list(event_rows(events))))
    return {"peaks": plain(rows), "events": plain(events)}, tables


def glance_rows(seen: Glance) -> Iterator[tuple[str, ...]]:
    """A row a process, and one for a GPU without any."""
    for each in seen.gpus.values():
        yield from _gpu_rows(each)


def peak_rows(rows: Sequence[PeakRow]) -> Iterator[tuple[str, ...]]:
    """A row a peak; pid 0 is a whole job."""
    for row in rows:
        key = row.key
        flags = " ".join([*row.flags.words, *(["ended"] if row.ended else []), *([f"xid={row.xid}"] if row.xid else [])])
        counts = (str(row.samples), str(row.gaps))
        whose = (key.job or "?", str(key.pid or "all"))
        yield (key.gpu_uuid, *whose, key.source, _gib(row.peak_bytes), _time(row.last_time), *counts, flags, key.prediction)


def event_rows(events: Sequence[JobEvent]) -> Iterator[tuple[str, ...]]:
    """A row an end of a job."""
    for event in events:
        yield event.job, event.event, _time(event.time), event.prediction


def _gpu_rows(seen: SeenGpu) -> Iterator[tuple[str, ...]]:
    head = (seen.gpu.uuid, seen.gpu.name, f"{_gib(seen.used_bytes)} of {_gib(seen.gpu.total_bytes)}")
    if not seen.processes:
        yield (*head, "", "", "", "", "")
    for each in seen.processes.values():
        memory = (_gib(each.process.used_bytes), "" if each.accounted_bytes is None else _gib(each.accounted_bytes))
        yield (*head, str(each.process.pid), *memory, each.owner.job or "?", each.owner.prediction)


def _gib(size_bytes: int | None) -> str:
    return "unknown" if size_bytes is None else f"{size_bytes / _GIB:.2f} GiB"


def _time(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(seconds))
