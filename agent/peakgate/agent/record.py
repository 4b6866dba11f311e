"""One growing peak: what the tracker knows of a key, and when it is worth writing down."""

from __future__ import annotations

from dataclasses import dataclass, field

from peakgate.agent.peaks import NO_FLAGS, Flag, PeakKey, PeakRow
from peakgate.agent.quality import Quality
from peakgate.agent.samples import Gpu
from peakgate.agent.xid import is_hardware

REFRESH_SECONDS = 10.0
"""A record that did not change is written again after this long, so that `last_time` and the counts keep up without a write a second."""


@dataclass(slots=True)
class Record:
    """The maximum over the samples of one key."""

    key: PeakKey
    gpu: Gpu
    uid: int
    peak_bytes: int
    peak_time: float
    first_time: float
    last_time: float
    quality: Quality
    samples: int = 0
    gaps: int = 0
    flags: Flag = NO_FLAGS
    xid: int = 0
    ended: bool = False
    _written: tuple[int, Flag, int, bool] | None = field(default=None)
    _written_at: float = field(default=0.0)

    def see(self, *, used_bytes: int, time: float, moment: float) -> None:
        """Takes one sample; `moment` is on a clock that nobody sets."""
        if used_bytes > self.peak_bytes:
            self.peak_bytes, self.peak_time = used_bytes, time
        self.samples += 1
        self.last_time = time
        self.quality.see(used_bytes=used_bytes, moment=moment)

    def see_xid(self, xid: int) -> None:
        """The GPU has reported an error; the highest number is kept."""
        self.xid = max(self.xid, xid)
        if is_hardware(xid):
            self.flags |= Flag.XID

    def end(self, *, card_was_full: bool | None = None) -> None:
        """The process has ended; `card_was_full` None: it has not, its rows go on under another name."""
        if card_was_full is not None and not self.ended:
            self.quality.process_ended(peak_bytes=self.peak_bytes, card_was_full=card_was_full)
        self.ended = True

    def to_write(self, moment: float) -> PeakRow | None:
        """The row, when it must be written now: new, higher, flagged, ended, or due for a refresh."""
        if self.peak_bytes == 0:
            return None  # a process that is listed before it holds memory
        state = (self.peak_bytes, self.flags | self.quality.flags, self.xid, self.ended)
        if state == self._written and moment - self._written_at < REFRESH_SECONDS:
            return None
        self._written, self._written_at = state, moment
        return self.row()

    def row(self) -> PeakRow:
        """The row as it stands."""
        return PeakRow(
            key=self.key,
            gpu_name=self.gpu.name,
            gpu_total_bytes=self.gpu.total_bytes,
            peak_bytes=self.peak_bytes,
            peak_time=self.peak_time,
            first_time=self.first_time,
            last_time=self.last_time,
            samples=self.samples,
            gaps=self.gaps,
            flags=self.flags | self.quality.flags,
            ended=self.ended,
            uid=self.uid,
            longest_gap_seconds=self.quality.longest_gap_seconds,
            xid=self.xid,
        )
