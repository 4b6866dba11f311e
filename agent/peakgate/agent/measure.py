"""A process list in bytes: what each process and each training holds.

The peak of a job on a GPU is the maximum over the samples of the SUM over its processes, not the sum of their maxima: processes of one job
need not be at their heights together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from peakgate.agent.accounted import Crowds
from peakgate.agent.device_memory import DeviceMemory
from peakgate.agent.hidden_memory import HiddenMemory
from peakgate.agent.owner import Owner
from peakgate.agent.peaks import DEVICE, NO_FLAGS, SAMPLED, Flag, Training
from peakgate.agent.preallocation import HINTS, says_it_preallocates
from peakgate.agent.proc import ProcessId, ProcFolder
from peakgate.agent.quality import Quality
from peakgate.agent.records import WHOLE_JOB, Records
from peakgate.agent.samples import DeviceSample, GpuProcess, Kind, ProcessSample


@dataclass(slots=True)
class _Gpu:
    """What is known of a GPU besides its processes; `last_list` is the moment of its last one, None before the first."""

    device: DeviceMemory = field(default_factory=DeviceMemory)
    hidden: HiddenMemory = field(default_factory=HiddenMemory)
    last_list: float | None = None


class Measure:
    """Puts the figures of the lists into `records`."""

    def __init__(self, *, records: Records, proc: ProcFolder) -> None:
        self._records = records
        self._proc = proc
        self._gpus: dict[str, _Gpu] = {}
        self.crowds = Crowds()
        self.unattributed_bytes: dict[str, int] = {}
        """Memory of processes that belong to no job, at the last list, by GPU."""

    def see_device(self, sample: DeviceSample) -> None:
        """Takes a reading of the whole GPU."""
        self._gpus.setdefault(sample.gpu.uuid, _Gpu()).device.see(sample.used_bytes)

    def see_list(self, sample: ProcessSample, present: Mapping[ProcessId, GpuProcess], owners: Mapping[ProcessId, Owner]) -> None:
        """Takes a list, its processes identified and with their owners."""
        gpu = self._gpus.setdefault(sample.gpu.uuid, _Gpu())
        alone_bytes = gpu.device.held_by(frozenset(present))
        for process, seen in present.items():
            self._see(sample, owners[process], process, [seen], alone_bytes if len(present) == 1 else None)
        for (attempt, _), processes in _trainings(owners).items():
            if len(processes) > 1:
                self.crowds.note(sample.gpu.uuid, attempt)
            seen_processes = [present[process] for process in processes]
            self._see(sample, owners[processes[0]], WHOLE_JOB, seen_processes, alone_bytes if len(processes) == len(present) else None)
        self.unattributed_bytes[sample.gpu.uuid] = sum(
            present[process].used_bytes or 0 for process, owner in owners.items() if not owner.job
        )
        self._look_for_hidden_memory(sample, gpu)
        gpu.last_list = sample.moment

    def card_was_full(self, sample: ProcessSample) -> bool:
        """Whether the GPU had next to nothing left before this list, which was taken already."""
        return Quality(usable_bytes=sample.gpu.usable_bytes).is_full(self._gpus[sample.gpu.uuid].device.highest_before_bytes)

    def forget(self, gpu_uuid: str) -> None:
        """The GPU is gone."""
        self._gpus.pop(gpu_uuid, None)
        self.unattributed_bytes.pop(gpu_uuid, None)

    def _see(self, sample: ProcessSample, owner: Owner, process: ProcessId, seen: list[GpuProcess], alone_bytes: int | None) -> None:
        """Takes the sum of their memory; where a figure is not available, the whole GPU's, if nobody else is on it (`alone_bytes`)."""
        known = [one.used_bytes for one in seen if one.used_bytes is not None]
        flags = Flag.MPS if any(Kind.MPS in one.kinds for one in seen) else NO_FLAGS
        if len(known) == len(seen):
            self._record(sample, owner, process, SAMPLED, sum(known), flags)
        elif alone_bytes is not None:
            self._record(sample, owner, process, DEVICE, alone_bytes, flags)
        else:
            self._records.miss(self._records.key_of(sample.gpu.uuid, owner, process, SAMPLED))

    def _record(self, sample: ProcessSample, owner: Owner, process: ProcessId, source: str, used_bytes: int, flags: Flag) -> None:
        key = self._records.key_of(sample.gpu.uuid, owner, process, source)
        self._records.see(sample, owner, key, used_bytes=used_bytes, flags=flags, new_quality=lambda: self._new_quality(sample, process))

    def _new_quality(self, sample: ProcessSample, process: ProcessId) -> Quality:
        pids = [process.pid] if process.pid else [one.pid for one in sample.processes]
        return Quality(
            usable_bytes=sample.gpu.usable_bytes,
            low_until=self._gpus[sample.gpu.uuid].last_list,
            says_it_preallocates=any(says_it_preallocates(self._proc.environment(pid, HINTS)) for pid in pids),
        )

    def _look_for_hidden_memory(self, sample: ProcessSample, gpu: _Gpu) -> None:
        gpu.hidden.see(device_bytes=gpu.device.latest_bytes, used=(process.used_bytes for process in sample.processes))
        for record in self._records.on(sample.gpu.uuid) if gpu.hidden.is_growing else ():
            if record.key.source == SAMPLED:
                record.flags |= Flag.UNATTRIBUTED


def _trainings(owners: Mapping[ProcessId, Owner]) -> dict[Training, list[ProcessId]]:
    """The processes of each training; those of no job are of none."""
    trainings: dict[Training, list[ProcessId]] = {}
    for process, owner in owners.items():
        if owner.job:
            trainings.setdefault(owner.training, []).append(process)
    return trainings
