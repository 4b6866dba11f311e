"""A peak as the agent keeps and sends it. Rows merge by maximum, minimum and union: repeats and disorder change nothing."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntFlag


class Flag(IntFlag):
    """Why a figure is not exact. The names in lower case are the words on the wire."""

    CENSORED = 1
    PREALLOCATED = 2
    UNATTRIBUTED = 4
    MPS = 8
    TRUNCATED = 16

    @property
    def words(self) -> list[str]:
        """The flags that are set, as words."""
        return [str(flag.name).lower() for flag in Flag if flag in self]


NO_FLAGS = Flag(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class PeakKey:
    """What a peak is of. `pid` 0 is the whole job on this GPU; `source` is sampled or device (the figure of the whole GPU)."""

    cluster: str
    boot_id: str
    gpu_uuid: str
    job: str
    restart: int
    prediction: str
    pid: int
    pid_start_ticks: int
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PeakRow:
    """The highest memory so far. Times are seconds since the epoch; `uid` is -1 when it is not known."""

    key: PeakKey
    gpu_name: str
    gpu_total_bytes: int
    peak_bytes: int
    peak_time: float
    first_time: float
    last_time: float
    samples: int = 1
    gaps: int = 0
    flags: Flag = NO_FLAGS
    ended: bool = False
    uid: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEvent:
    """The end of a job attempt on this node. `event` is finished, or failed when a GPU was lost under it."""

    cluster: str
    job: str
    restart: int
    prediction: str
    event: str
    time: float
