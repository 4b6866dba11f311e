"""A peak as the agent keeps and sends it. Rows merge by maximum, minimum and union: repeats and disorder change nothing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from enum import IntFlag

from peakgate.agent.proc import ProcessId
from peakgate.v1.allocator_report import PhaseReport

Attempt = tuple[str, str, int, str]
"""What tells one attempt of a job from another: cluster, job, restart, prediction."""
Training = tuple[Attempt, str]
"""What tells one training from another: attempt, step."""

SAMPLED, DEVICE, ACCOUNTING, HELPER = "sampled", "device", "accounting", "torch"
SOURCES = (SAMPLED, DEVICE, ACCOUNTING, HELPER)
"""How a peak was measured, as the words on the wire: NVML's process lists, the figure of the whole GPU, the driver's own maximum of a
process, the in-process helper."""


class Flag(IntFlag):
    """Why a figure is not exact. The names in lower case are the words on the wire."""

    CENSORED = 1
    PREALLOCATED = 2
    UNATTRIBUTED = 4
    MPS = 8
    TRUNCATED = 16
    SEVERAL = 32
    """Several trainings ran under one prediction."""
    FLUCTUATING = 64
    """The memory fell by more than a hundredth in between: a sample after the peak does not show it any more."""
    XID = 128
    """The GPU reported an error of the hardware."""
    OOM = 256
    """The caching allocator raised an out-of-memory error."""
    ASYNC_ALLOCATOR = 512
    """cudaMallocAsync keeps the memory, whose figures torch does not have."""

    @property
    def words(self) -> list[str]:
        """The flags that are set, as words."""
        return [str(flag.name).lower() for flag in Flag if flag in self]


NO_FLAGS = Flag(0)


class OfTraining:
    """What is of one training. The fields are those of the data classes that inherit this."""

    __slots__ = ()

    cluster: str
    job: str
    restart: int
    prediction: str
    step: str

    @property
    def attempt(self) -> Attempt:
        """The attempt that it is of."""
        return self.cluster, self.job, self.restart, self.prediction

    @property
    def training(self) -> Training:
        """The training that it is of."""
        return self.attempt, self.step


@dataclass(frozen=True, slots=True, kw_only=True)
class PeakKey(OfTraining):
    """What a peak is of. `pid` 0 is the whole job on this GPU; `source` is one of SOURCES; `step` tells trainings of one job apart."""

    cluster: str
    boot_id: str
    gpu_uuid: str
    job: str
    restart: int
    prediction: str
    pid: int
    pid_start_ticks: int
    source: str
    step: str = ""

    @property
    def process(self) -> ProcessId:
        """The process that it is of."""
        return ProcessId(self.pid, self.pid_start_ticks)


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocator:
    """What the in-process helper says of the caching allocator. `longest_sequence` is in tokens; 0 where it was not seen."""

    allocated_bytes: int = 0
    reserved_bytes: int = 0
    retries: int = 0
    ooms: int = 0
    steps_done: int = 0
    longest_sequence: int = 0
    phases: tuple[PhaseReport, ...] = ()


NO_ALLOCATOR = Allocator()
ALLOCATOR_FIGURES = tuple(each.name for each in fields(Allocator) if each.name != "phases")
"""Each only grows, so that two reports merge by the maximum."""


def merged_phases(phases: Iterable[PhaseReport]) -> tuple[PhaseReport, ...]:
    """Each phase once, with the maximum of each of its figures."""
    highest: dict[str, PhaseReport] = {}
    for each in phases:
        known = highest.get(each.phase, each)
        highest[each.phase] = PhaseReport(
            phase=each.phase,
            allocated_bytes=max(known.allocated_bytes, each.allocated_bytes),
            reserved_bytes=max(known.reserved_bytes, each.reserved_bytes),
        )
    return tuple(highest.values())


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
    longest_gap_seconds: float = 0.0
    xid: int = 0
    allocator: Allocator = NO_ALLOCATOR


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEvent:
    """The end of a job attempt on this node. `event` is finished; failed when a GPU was lost under it; oom when its helper told so last."""

    cluster: str
    job: str
    restart: int
    prediction: str
    event: str
    time: float
