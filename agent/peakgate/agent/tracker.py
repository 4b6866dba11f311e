"""Samples in, peaks and job ends out.

Which processes are there is kept in open_processes.py, what they hold in measure.py, the growing peaks in records.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from peakgate.agent.accounted import accounting_rows, is_same_process, start_time_of
from peakgate.agent.attribution import Attribution
from peakgate.agent.changes import Changes
from peakgate.agent.ended_rows import EndedRows
from peakgate.agent.helper_reports import HelperSample
from peakgate.agent.helper_rows import HelperRows
from peakgate.agent.job_ends import JobEnds
from peakgate.agent.measure import Measure
from peakgate.agent.open_processes import GpuPlace, OpenProcesses
from peakgate.agent.owner import Owner
from peakgate.agent.peaks import HELPER, NO_FLAGS, Flag, JobEvent, PeakRow
from peakgate.agent.proc import ProcessId, ProcFolder
from peakgate.agent.records import WHOLE_JOB, Records
from peakgate.agent.samples import AccountingSample, DeviceSample, GpuGone, ProcessSample, ReadFailed, Sample, XidSample


class Tracker:
    """Keeps the peaks of everything that is on the GPUs now. One thread."""

    def __init__(
        self, *, attribution: Attribution, proc: ProcFolder, boot_id: str, start_time_of: Callable[[int], float] = start_time_of
    ) -> None:
        self._attribution = attribution
        self._proc = proc
        self._start_time_of = start_time_of
        self._open = OpenProcesses(proc=proc)
        self._records = Records(boot_id=boot_id)
        self._measure = Measure(records=self._records, proc=proc)
        self._helpers = HelperRows()
        self._ends = JobEnds()
        self._ended = EndedRows()

    @property
    def refused(self) -> str:
        """Why no process is attributed; empty while all is well."""
        return self._attribution.refused

    @property
    def busy_gpus(self) -> set[str]:
        """The GPUs with a process on them, at the last list. May be read from another thread."""
        return self._open.gpus

    @property
    def unattributed_bytes(self) -> dict[str, int]:
        """Memory of processes that belong to no job, at the last list, by GPU."""
        return self._measure.unattributed_bytes

    def take(self, sample: Sample) -> Changes:
        """Takes one sample of the sampler."""
        changes = self._take(sample)
        changes.rows = [self._marked(row) for row in changes.rows]
        self._ended.note(changes.rows)
        for attempt in self._attribution.newly_several():
            changes.rows += self._ended.take_several(attempt)
        return changes

    def everything(self) -> list[PeakRow]:
        """All rows as they stand, for the moment before the agent stops."""
        return self._records.everything()

    def find(self, pid: int, start_ticks: int, gpu_uuid: str) -> GpuPlace | None:
        """Of which GPU and process a helper's report is (OpenProcesses.find); None too while NVML's pids are not the kernel's here."""
        return None if self.refused else self._open.find(pid, start_ticks, gpu_uuid)

    def hear(self, sample: HelperSample) -> Changes:
        """Takes what a process says of itself. Its prediction is a hint, worth as much as its environment."""
        uuid, process, report = sample.gpu.uuid, sample.process, sample.report
        if self._open.owner_of(uuid, process) is None:
            return Changes()
        self._attribution.hint(gpu_uuid=uuid, process=process, prediction=report.prediction, training=report.training)
        owner = self._attribution.owner_of(gpu_uuid=uuid, process=process)
        self._take_in(uuid, process, owner)
        key = self._records.key_of(uuid, owner, process, HELPER)
        return Changes(rows=self._helpers.take(sample, key, uid=owner.uid, flags=self._flags_of(owner)))

    def _take(self, sample: Sample) -> Changes:
        match sample:
            case DeviceSample():
                self._measure.see_device(sample)
                return Changes()
            case ReadFailed():
                for record in self._records.on(sample.gpu.uuid):
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

    def _processes(self, sample: ProcessSample) -> Changes:
        uuid = sample.gpu.uuid
        present = {self._open.identify(uuid, process.pid): process for process in sample.processes}
        owners = self._attribution.owners_on(uuid, present)
        for process, owner in owners.items():
            self._take_in(uuid, process, owner)
        self._measure.see_list(sample, present, owners)
        self._flag_several(uuid)
        return self._close(sample, self._open.missing(uuid, present), card_was_full=self._measure.card_was_full(sample))

    def _take_in(self, uuid: str, process: ProcessId, owner: Owner) -> None:
        """Opens a process, or hands it to the owner that a late drop-in file names: what it was held under ends here."""
        left = self._open.take_in(uuid, process, owner)
        if left:
            self._records.end(uuid, left, process)
            if not self._open.trains_on(uuid, left):
                self._records.end(uuid, left, WHOLE_JOB)

    def _xid(self, sample: XidSample) -> Changes:
        changes = Changes()
        for record in self._records.lately_on(sample.gpu.uuid, sample.moment):
            record.see_xid(sample.xid)
            if row := record.to_write(sample.moment):
                changes.rows.append(row)
        return changes

    def _accounted(self, sample: AccountingSample) -> Changes:
        changes = Changes()
        records = self._records.lately_on(sample.gpu.uuid, sample.moment)
        for accounted in sample.processes:
            for record in records:
                if is_same_process(accounted, record, self._start_time_of(record.key.pid_start_ticks)):
                    is_alone = not self._measure.crowds.has(record.key)
                    changes.rows += accounting_rows(accounted, record, is_alone=is_alone, now=sample.time)
                    break
        return changes

    def _gpu_gone(self, sample: GpuGone) -> Changes:
        uuid, ended = sample.gpu.uuid, self._open.on(sample.gpu.uuid)
        for process in ended:
            if owner := self._open.owner_of(uuid, process):
                self._ends.cut_off(owner.attempt)
        for record in self._records.on(uuid):
            record.flags |= Flag.TRUNCATED
        self._helpers.cut_off(uuid)
        self._measure.forget(uuid)
        return self._close(sample, ended, card_was_full=None)

    def _close(self, sample: ProcessSample | GpuGone, ended: list[ProcessId], *, card_was_full: bool | None) -> Changes:
        """Ends these processes and, with its last process, a training and a job; then says what is worth writing."""
        uuid, owners, helper_rows = sample.gpu.uuid, list[Owner](), list[PeakRow]()
        for process in ended:
            owner = self._open.close(uuid, process)
            owners.append(owner)
            self._attribution.forget(gpu_uuid=uuid, process=process)
            self._records.end(uuid, owner.training, process, card_was_full=card_was_full)
            if self._helpers.ran_out(uuid, process):
                self._ends.ran_out(owner.attempt)
            helper_rows += self._helpers.end(uuid, process, flags=self._flags_of(owner))
        for training in dict.fromkeys(owner.training for owner in owners):
            if not self._open.trains_on(uuid, training):
                self._records.end(uuid, training, WHOLE_JOB, card_was_full=card_was_full)
        return Changes(rows=self._records.take_changed(sample) + helper_rows, events=self._job_ends(owners, sample.time))

    def _job_ends(self, left: list[Owner], time: float) -> list[JobEvent]:
        """The ends of those attempts of which a process has left and none is on any GPU any more."""
        ended = [owner for owner in {owner.attempt: owner for owner in left}.values() if not self._open.lives(owner.attempt)]
        return [event for owner in ended if (event := self._ends.event(owner, time))]

    def _flags_of(self, owner: Owner) -> Flag:
        flags = NO_FLAGS if owner.job else Flag.UNATTRIBUTED
        return flags | Flag.SEVERAL if self._attribution.are_several(owner.attempt) else flags

    def _flag_several(self, uuid: str) -> None:
        """Marks the rows of attempts of which several trainings have been on this node: the peak is not that of the one predicted."""
        for record in self._records.on(uuid):
            if self._attribution.are_several(record.key.attempt):
                record.flags |= Flag.SEVERAL

    def _marked(self, row: PeakRow) -> PeakRow:
        """The driver's figures of a process that ended before the next training began have come late: they are marked as well."""
        return replace(row, flags=row.flags | Flag.SEVERAL) if self._attribution.are_several(row.key.attempt) else row
