"""One growing peak: what the tracker knows of a key, and when it is worth writing down."""

from __future__ import annotations

from dataclasses import dataclass, field

from peakgate.agent.peaks import NO_FLAGS, Flag, PeakKey, PeakRow
from peakgate.agent.samples import Gpu

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
    samples: int = 0
    gaps: int = 0
    flags: Flag = NO_FLAGS
    ended: bool = False
    _written: tuple[int, Flag, bool] | None = field(default=None)
    _written_at: float = field(default=0.0)

    def see(self, *, used_bytes: int, time: float) -> None:
        """Takes one sample."""
        if used_bytes > self.peak_bytes:
            self.peak_bytes, self.peak_time = used_bytes, time
        self.samples += 1
        self.last_time = time

    def to_write(self, now: float) -> PeakRow | None:
        """The row, when it must be written now: new, higher, flagged, ended, or due for a refresh."""
        if self.peak_bytes == 0:
            return None  # a process that is listed before it holds memory
        state = (self.peak_bytes, self.flags, self.ended)
        if state == self._written and now - self._written_at < REFRESH_SECONDS:
            return None
        self._written, self._written_at = state, now
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
            flags=self.flags,
            ended=self.ended,
            uid=self.uid,
        )
