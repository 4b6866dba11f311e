"""Writes the samples down as they come, one JSON object a line, with what /proc and the attribution said of the processes then.

The file can be put through the same code elsewhere (`peakgate agent replay FILE`). It names users' processes by pid, job and uid.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import asdict
from io import FileIO
from pathlib import Path

import structlog

from peakgate.agent.attribution import Attribution
from peakgate.agent.errors import UsageError
from peakgate.agent.proc import ProcessId, ProcFolder
from peakgate.agent.samples import ProcessSample, Sample

log = structlog.get_logger("peakgate.agent.recorder")


@contextlib.contextmanager
def recording(path: Path | None, attribution: Attribution, proc: ProcFolder) -> Iterator[Recorder | None]:
    """A recorder while the block runs; None: nothing is recorded. Raises UsageError for a file that cannot be written."""
    if path is None:
        yield None
        return
    try:
        recorder = Recorder(path=path, attribution=attribution, proc=proc)
    except OSError as error:
        raise UsageError(f"no recording: {error}", remedy="Give another --record") from error
    with contextlib.closing(recorder):
        yield recorder


class Recorder:
    """Used by the thread that watches. A file that cannot be written ends the recording, not the watch. Raises OSError at the start."""

    def __init__(self, *, path: Path, attribution: Attribution, proc: ProcFolder) -> None:
        self._attribution = attribution
        self._proc = proc
        self._seen: dict[str, set[int]] = {}
        self._file: FileIO | None = path.open("ab", buffering=0)

    def write(self, sample: Sample) -> None:
        """One line. It goes before the tracker's turn, which forgets the processes that have left."""
        if self._file is None:
            return
        line = {"kind": type(sample).__name__, **asdict(sample)}
        if isinstance(sample, ProcessSample):
            line |= self._facts(sample)
        try:
            self._file.write(json.dumps(line, separators=(",", ":")).encode() + b"\n")
        except OSError as error:
            log.error("recording ended", problem=str(error))  # noqa: TRY400 (a full disk needs no trace)
            self._file.close()
            self._file = None

    def close(self) -> None:
        """Closes the file."""
        if self._file:
            self._file.close()

    def _facts(self, sample: ProcessSample) -> dict[str, object]:
        """When the processes began that /proc shows, also those that are not on the GPU any more, and whose those on the GPU are."""
        uuid, present = sample.gpu.uuid, {process.pid for process in sample.processes}
        pids = present | self._seen.get(uuid, set())
        starts = {pid: ticks for pid in sorted(pids) if (ticks := self._proc.start_ticks(pid)) is not None}
        self._seen[uuid] = present | (pids & starts.keys())
        owners = {
            pid: asdict(self._attribution.owner_of(gpu_uuid=uuid, process=ProcessId(pid, starts[pid])))
            for pid in sorted(present & starts.keys())
        }
        return {"starts": starts, "owners": owners}
