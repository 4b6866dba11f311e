"""Samples in, peaks and job ends out.

The peak of a job on a GPU is the maximum over the samples of the SUM over its processes, not the sum of their maxima: processes of one job
need not be at their heights together. A failed read never ends a process; a process that is missing from one good list while /proc still
shows it is given a second one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from peakgate.agent.accounted import SOURCE as ACCOUNTING
from peakgate.agent.accounted import Crowds, accounting_rows, is_same_process, start_time_of
from peakgate.agent.attribution import Attribution, Owner
from peakgate.agent.device_memory import DeviceMemory
from peakgate.agent.ended_rows import EndedRows, attempt_of
from peakgate.agent.helper_reports import HelperSample
from peakgate.agent.helper_rows import SOURCE as HELPER
from peakgate.agent.helper_rows import HelperRows
from peakgate.agent.hidden_memory import HiddenMemory
from peakgate.agent.peaks import NO_FLAGS, Flag, JobEvent, PeakKey, PeakRow
from peakgate.agent.preallocation import HINTS, says_it_preallocates
from peakgate.agent.proc import ProcessId, ProcFolder
from peakgate.agent.quality import Quality
from peakgate.agent.recent import RecentlyEnded
from peakgate.agent.record import Record
from peakgate.agent.samples import (
    AccountingSample,
    DeviceSample,
    GpuGone,
    GpuProcess,
    Kind,
    ProcessSample,
    ReadFailed,
    Sample,
    XidSample,
)
from peakgate.agent.trainings import Attempt
from peakgate.v1.allocator_report import bare_uuid

ENDED_AFTER_MISSES = 2
"""Good lists without a process that /proc still shows, after which it has left the GPU."""

WHOLE_JOB = ProcessId(0, 0)
Training = tuple[Attempt, str]


@dataclass(slots=True)
class Changes:
    """What one sample brought: rows to write, jobs that ended."""

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


@dataclass(slots=True)
class _Open:
    """A process on a GPU."""

    owner: Owner
    misses: int = 0


class Tracker:
    """Keeps the peaks of everything that is on the GPUs now. One thread."""

    def __init__(
        self, *, attribution: Attribution, proc: ProcFolder, boot_id: str, start_time_of: Callable[[int], float] = start_time_of
    ) -> None:
        self._attribution = attribution
        self._proc = proc
        self._boot_id = boot_id
        self._open: dict[tuple[str, ProcessId], _Open] = {}
        self._records: dict[str, dict[PeakKey, Record]] = {}
        self._devices: dict[str, DeviceMemory] = {}
        self._hidden: dict[str, HiddenMemory] = {}
        self._last_list: dict[str, float] = {}
        self._recent = RecentlyEnded()
        self._ended = EndedRows()
        self._crowds = Crowds()
        self._start_time_of = start_time_of
        self._cut_off: set[Attempt] = set()
        self._helpers = HelperRows()
        self._ran_out: set[Attempt] = set()
        self.unattributed_bytes: dict[str, int] = {}
        """Memory of processes that belong to no job, at the last list, by GPU."""

    @property
    def refused(self) -> str:
        """Why no process is attributed; empty while all is well."""
        return self._attribution.refused

    @property
    def busy_gpus(self) -> set[str]:
        """The GPUs with a process on them, at the last list. May be read from another thread."""
        return {gpu_uuid for gpu_uuid, _ in list(self._open)}

    def take(self, sample: Sample) -> Changes:
        """Takes one sample of the sampler."""
        changes = self._take(sample)
        changes.rows = [self._marked(row) for row in changes.rows]
        self._ended.note(changes.rows)
        for attempt in self._attribution.newly_several():
            changes.rows += self._ended.take_several(attempt)
        return changes

    def _take(self, sample: Sample) -> Changes:
        match sample:
            case DeviceSample():
                self._devices.setdefault(sample.gpu.uuid, DeviceMemory()).see(sample.used_bytes)
                return Changes()
            case ReadFailed():
                for record in self._records_on(sample.gpu.uuid):
                    record.gaps += 1
                return Changes()
            case GpuGone():
                return self._gpu_gone(sample)
            case ProcessSample():
                return self._processes(sample)
            case XidSample():
                return self._xid(sample)
            case AccountingSample():
                return self._accounted(sample)

    def everything(self) -> list[PeakRow]:
        """All rows as they stand, for the moment before the agent stops."""
        records = (record for records in self._records.values() for record in records.values())
        return [record.row() for record in records if record.peak_bytes]

    def find(self, pid: int, start_ticks: int, gpu_uuid: str) -> tuple[str, ProcessId] | None:
        """The GPU and the process that a helper's report is of; None while no list has it, or NVML's pids are not those of the kernel here.

        CUDA before 12 gives the GPU's UUID for a MIG instance, and torch before 2.4 none at all: then it is the only one of the process.
        """
        if self.refused:
            return None
        on = [place for place in self._open if place[1].pid == pid and (not start_ticks or place[1].start_ticks in (start_ticks, 0))]
        named = [place for place in on if bare_uuid(place[0]) == bare_uuid(gpu_uuid)]
        only = on if len(on) == 1 and (not gpu_uuid or on[0][0].startswith("MIG-")) else []
        return next(iter(named or only), None)

    def hear(self, sample: HelperSample) -> Changes:
        """Takes what a process says of itself. Its prediction is a hint, worth as much as its environment."""
        uuid, process, report = sample.gpu.uuid, sample.process, sample.report
        if (uuid, process) not in self._open:
            return Changes()
        self._attribution.hint(gpu_uuid=uuid, process=process, prediction=report.prediction, training=report.training)
        self._take_in(uuid, process, self._attribution.owner_of(gpu_uuid=uuid, process=process))
        owner = self._open[uuid, process].owner
        return Changes(rows=self._helpers.take(sample, self._key(uuid, owner, process, HELPER), uid=owner.uid, flags=self._flags_of(owner)))

    def _flags_of(self, owner: Owner) -> Flag:
        flags = NO_FLAGS if owner.job else Flag.UNATTRIBUTED
        return flags | Flag.SEVERAL if self._attribution.are_several(owner.attempt) else flags

    def _processes(self, sample: ProcessSample) -> Changes:
        uuid = sample.gpu.uuid
        present = {self._identify(uuid, process.pid): process for process in sample.processes}
        owners = self._attribution.owners_on(uuid, present)
        for process, owner in owners.items():
            self._take_in(uuid, process, owner)
        self._measure(sample, present, owners)
        self._flag_several(uuid)
        self.unattributed_bytes[uuid] = sum(present[process].used_bytes or 0 for process, owner in owners.items() if not owner.job)
        self._look_for_hidden_memory(sample)
        self._last_list[uuid] = sample.moment
        ended = [process for process in self._on(uuid) if process not in present and self._has_left(uuid, process)]
        return self._close(sample, ended)

    def _look_for_hidden_memory(self, sample: ProcessSample) -> None:
        hidden = self._hidden.setdefault(sample.gpu.uuid, HiddenMemory())
        device = self._devices[sample.gpu.uuid]
        hidden.see(device_bytes=device.latest_bytes, used=(process.used_bytes for process in sample.processes))
        for record in self._records_on(sample.gpu.uuid) if hidden.is_growing else ():
            if record.key.source == "sampled":
                record.flags |= Flag.UNATTRIBUTED

    def _xid(self, sample: XidSample) -> Changes:
        changes = Changes()
        for record in [*self._records_on(sample.gpu.uuid), *self._recent.on(sample.gpu.uuid, sample.moment)]:
            record.see_xid(sample.xid)
            if row := record.to_write(sample.moment):
                changes.rows.append(row)
        return changes

    def _accounted(self, sample: AccountingSample) -> Changes:
        """A living process comes before one that has just ended, which may have had the same pid."""
        changes = Changes()
        records = [*self._records_on(sample.gpu.uuid), *self._recent.on(sample.gpu.uuid, sample.moment)]
        for accounted in sample.processes:
            for record in records:
                if is_same_process(accounted, record, self._start_time_of(record.key.pid_start_ticks)):
                    is_alone = not self._crowds.has(record.key)
                    changes.rows += accounting_rows(accounted, record, is_alone=is_alone, now=sample.time)
                    break
        return changes

    def _take_in(self, uuid: str, process: ProcessId, owner: Owner) -> None:
        """Opens a process, or hands it to the owner that a late drop-in file names: what it was held under ends here."""
        before = self._open.get((uuid, process))
        if before and before.owner == owner:
            before.misses = 0
            return
        self._open[uuid, process] = _Open(owner)
        if before and before.owner.training != owner.training:
            self._end_records(uuid, before.owner.training, process)
            if not self._trains_on(uuid, before.owner.training):
                self._end_records(uuid, before.owner.training, WHOLE_JOB)

    def _identify(self, uuid: str, pid: int) -> ProcessId:
        """A process that /proc no longer shows but NVML still lists is the one that had this pid at the last list."""
        start_ticks = self._proc.start_ticks(pid)
        if start_ticks is not None:
            return ProcessId(pid, start_ticks)
        return next((process for process in self._on(uuid) if process.pid == pid), ProcessId(pid, 0))

    def _measure(self, sample: ProcessSample, present: dict[ProcessId, GpuProcess], owners: dict[ProcessId, Owner]) -> None:
        device = self._devices.setdefault(sample.gpu.uuid, DeviceMemory()).held_by(frozenset(present))
        for process, seen in present.items():
            alone_bytes = device if len(present) == 1 else None
            self._see(sample, owners[process], process, [seen], alone_bytes)
        trainings: dict[Training, list[ProcessId]] = {}
        for process, owner in owners.items():
            if owner.job:
                trainings.setdefault(owner.training, []).append(process)
        for (attempt, _), processes in trainings.items():
            alone_bytes = device if len(processes) == len(present) else None
            if len(processes) > 1:
                self._crowds.note(sample.gpu.uuid, attempt)
            self._see(sample, owners[processes[0]], WHOLE_JOB, [present[process] for process in processes], alone_bytes)

    def _see(self, sample: ProcessSample, owner: Owner, process: ProcessId, seen: list[GpuProcess], alone_bytes: int | None) -> None:
        """Takes the sum of their memory; where a figure is not available, the whole GPU's, if nobody else is on it (`alone_bytes`)."""
        known = [one.used_bytes for one in seen if one.used_bytes is not None]
        flags = Flag.MPS if any(Kind.MPS in one.kinds for one in seen) else NO_FLAGS
        if len(known) == len(seen):
            self._record(sample, owner, process, "sampled", sum(known), flags)
        elif alone_bytes is not None:
            self._record(sample, owner, process, "device", alone_bytes, flags)
        elif record := self._records.get(sample.gpu.uuid, {}).get(self._key(sample.gpu.uuid, owner, process, "sampled")):
            record.gaps += 1

    def _record(self, sample: ProcessSample, owner: Owner, process: ProcessId, source: str, used_bytes: int, flags: Flag) -> None:
        key = self._key(sample.gpu.uuid, owner, process, source)
        records = self._records.setdefault(sample.gpu.uuid, {})
        if key not in records:
            records[key] = Record(
                key=key,
                gpu=sample.gpu,
                uid=owner.uid,
                peak_bytes=used_bytes,
                peak_time=sample.time,
                first_time=sample.time,
                last_time=sample.time,
                quality=self._new_quality(sample, process),
                flags=NO_FLAGS if owner.job else Flag.UNATTRIBUTED,
            )
        records[key].flags |= flags
        records[key].see(used_bytes=used_bytes, time=sample.time, moment=sample.moment)

    def _new_quality(self, sample: ProcessSample, process: ProcessId) -> Quality:
        pids = [process.pid] if process.pid else [one.pid for one in sample.processes]
        return Quality(
            usable_bytes=sample.gpu.usable_bytes,
            low_until=self._last_list.get(sample.gpu.uuid),
            says_it_preallocates=any(says_it_preallocates(self._proc.environment(pid, HINTS)) for pid in pids),
        )

    def _key(self, uuid: str, owner: Owner, process: ProcessId, source: str) -> PeakKey:
        return PeakKey(
            cluster=owner.cluster,
            boot_id=self._boot_id,
            gpu_uuid=uuid,
            job=owner.job,
            restart=owner.restart,
            prediction=owner.prediction,
            pid=process.pid,
            pid_start_ticks=process.start_ticks,
            source=source,
            step=owner.step,
        )

    def _flag_several(self, uuid: str) -> None:
        """Marks the rows of attempts of which several trainings have been on this node: the peak is not that of the one predicted."""
        for record in self._records_on(uuid):
            if self._attribution.are_several(attempt_of(record.key)):
                record.flags |= Flag.SEVERAL

    def _marked(self, row: PeakRow) -> PeakRow:
        """The driver's figures of a process that ended before the next training began have come late: they are marked as well."""
        return replace(row, flags=row.flags | Flag.SEVERAL) if self._attribution.are_several(attempt_of(row.key)) else row

    def _has_left(self, uuid: str, process: ProcessId) -> bool:
        state = self._open[uuid, process]
        state.misses += 1
        return state.misses >= ENDED_AFTER_MISSES or self._proc.start_ticks(process.pid) != process.start_ticks

    def _gpu_gone(self, sample: GpuGone) -> Changes:
        ended = self._on(sample.gpu.uuid)
        for process in ended:
            self._cut_off.add(self._open[sample.gpu.uuid, process].owner.attempt)
        for record in self._records_on(sample.gpu.uuid):
            record.flags |= Flag.TRUNCATED
        self._helpers.cut_off(sample.gpu.uuid)
        for by_gpu in (self._devices, self._hidden, self._last_list):
            by_gpu.pop(sample.gpu.uuid, None)
        self.unattributed_bytes.pop(sample.gpu.uuid, None)
        return self._close(sample, ended)

    def _close(self, sample: ProcessSample | GpuGone, ended: list[ProcessId]) -> Changes:
        """Ends these processes and, with its last process, a job; then says what is worth writing."""
        uuid, owners = sample.gpu.uuid, dict[Training, Owner]()
        was_full = self._card_was_full(sample)
        torch_rows: list[PeakRow] = []
        for process in ended:
            owner = self._open.pop((uuid, process)).owner
            owners[owner.training] = owner
            self._attribution.forget(gpu_uuid=uuid, process=process)
            self._end_records(uuid, owner.training, process, card_was_full=was_full)
            if self._helpers.ran_out(uuid, process):
                self._ran_out.add(owner.attempt)
            torch_rows += self._helpers.end(uuid, process, flags=self._flags_of(owner))
        changes = Changes()
        for training in owners:
            if not self._trains_on(uuid, training):
                self._end_records(uuid, training, WHOLE_JOB, card_was_full=was_full)
        for owner in {owner.attempt: owner for owner in owners.values()}.values():
            if not self._lives(owner.attempt):
                changes.events += self._job_ended(owner, sample.time)
        changes.rows = [row for record in self._records_on(uuid) if (row := record.to_write(sample.moment))] + torch_rows
        self._recent.add((record for record in self._records_on(uuid) if record.ended), sample.moment)
        self._records[uuid] = {record.key: record for record in self._records_on(uuid) if not record.ended}
        return changes

    def _card_was_full(self, sample: ProcessSample | GpuGone) -> bool | None:
        """Whether the GPU had next to nothing left before this list; None when it is gone, and its processes were cut off."""
        device = self._devices.get(sample.gpu.uuid)
        if isinstance(sample, GpuGone) or device is None:
            return None
        return Quality(usable_bytes=sample.gpu.usable_bytes).is_full(device.highest_before_bytes)

    def _end_records(self, uuid: str, training: Training, process: ProcessId, *, card_was_full: bool | None = None) -> None:
        for record in self._records_on(uuid):
            if ProcessId(record.key.pid, record.key.pid_start_ticks) == process and _training(record.key) == training:
                record.end(card_was_full=card_was_full)

    def _job_ended(self, owner: Owner, now: float) -> list[JobEvent]:
        event = "failed" if owner.attempt in self._cut_off else "oom" if owner.attempt in self._ran_out else "finished"
        self._cut_off.discard(owner.attempt)
        self._ran_out.discard(owner.attempt)
        if not owner.prediction:
            return []
        return [JobEvent(cluster=owner.cluster, job=owner.job, restart=owner.restart, prediction=owner.prediction, event=event, time=now)]

    def _lives(self, attempt: Attempt) -> bool:
        return any(state.owner.attempt == attempt for state in self._open.values())

    def _trains_on(self, uuid: str, training: Training) -> bool:
        return any(gpu_uuid == uuid and state.owner.training == training for (gpu_uuid, _), state in self._open.items())

    def _on(self, uuid: str) -> list[ProcessId]:
        return [process for gpu_uuid, process in self._open if gpu_uuid == uuid]

    def _records_on(self, uuid: str) -> list[Record]:
        return list(self._records.get(uuid, {}).values())


def _begins(row: PeakRow) -> bool:
    """Whether it is the first row of a predicted job on a GPU."""
    return row.key.pid == 0 and row.samples == 1 and row.key.source != ACCOUNTING and bool(row.key.prediction)


def _training(key: PeakKey) -> Training:
    return attempt_of(key), key.step
