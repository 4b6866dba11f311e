"""The growing peaks, by GPU and key, until what they are of has ended; and for a moment longer, for what comes late."""

from __future__ import annotations

from collections.abc import Callable

from peakgate.agent.owner import Owner
from peakgate.agent.peaks import NO_FLAGS, Flag, PeakKey, PeakRow, Training
from peakgate.agent.proc import ProcessId
from peakgate.agent.quality import Quality
from peakgate.agent.recent import RecentlyEnded
from peakgate.agent.record import Record
from peakgate.agent.samples import GpuGone, ProcessSample

WHOLE_JOB = ProcessId(0, 0)
"""Stands for all processes of a training on a GPU."""


class Records:
    """One a key."""

    def __init__(self, *, boot_id: str) -> None:
        self._boot_id = boot_id
        self._records: dict[str, dict[PeakKey, Record]] = {}
        self._recent = RecentlyEnded()

    def key_of(self, gpu_uuid: str, owner: Owner, process: ProcessId, source: str) -> PeakKey:
        """The key of what a source says of a process, or of WHOLE_JOB."""
        return PeakKey(
            cluster=owner.cluster,
            boot_id=self._boot_id,
            gpu_uuid=gpu_uuid,
            job=owner.job,
            restart=owner.restart,
            prediction=owner.prediction,
            pid=process.pid,
            pid_start_ticks=process.start_ticks,
            source=source,
            step=owner.step,
        )

    def see(
        self, sample: ProcessSample, owner: Owner, key: PeakKey, *, used_bytes: int, flags: Flag, new_quality: Callable[[], Quality]
    ) -> None:
        """Takes one figure of a key."""
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
                quality=new_quality(),
                flags=NO_FLAGS if owner.job else Flag.UNATTRIBUTED,
            )
        records[key].flags |= flags
        records[key].see(used_bytes=used_bytes, time=sample.time, moment=sample.moment)

    def miss(self, key: PeakKey) -> None:
        """A list came without a figure for this key: a gap."""
        if record := self._records.get(key.gpu_uuid, {}).get(key):
            record.gaps += 1

    def on(self, gpu_uuid: str) -> list[Record]:
        """Those of a GPU that still grow."""
        return list(self._records.get(gpu_uuid, {}).values())

    def lately_on(self, gpu_uuid: str, moment: float) -> list[Record]:
        """Those of a GPU that grow, then those that have just ended: a living process comes before one that had the same pid."""
        return [*self.on(gpu_uuid), *self._recent.on(gpu_uuid, moment)]

    def end(self, gpu_uuid: str, training: Training, process: ProcessId, *, card_was_full: bool | None = None) -> None:
        """Ends what is of this process, or of WHOLE_JOB, in this training. `card_was_full` as for Record.end."""
        for record in self.on(gpu_uuid):
            if record.key.process == process and record.key.training == training:
                record.end(card_was_full=card_was_full)

    def take_changed(self, sample: ProcessSample | GpuGone) -> list[PeakRow]:
        """The rows of the sample's GPU that are to be written now; what has ended is kept for a moment only."""
        records = self.on(sample.gpu.uuid)
        rows = [row for record in records if (row := record.to_write(sample.moment))]
        self._recent.add((record for record in records if record.ended), sample.moment)
        self._records[sample.gpu.uuid] = {record.key: record for record in records if not record.ended}
        return rows

    def everything(self) -> list[PeakRow]:
        """All rows as they stand."""
        records = (record for records in self._records.values() for record in records.values())
        return [record.row() for record in records if record.peak_bytes]
