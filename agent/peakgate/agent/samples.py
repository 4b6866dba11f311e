"""What one look at the GPUs gives. `time` is in seconds since the epoch, `clock` on a clock that nobody sets.

A recording of before `clock` was added, or a test, may leave it out: then `time` stands in.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntFlag


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """A GPU or a MIG instance. `total_bytes` is 0 where NVML cannot say.

    `reserved_bytes` is what the driver keeps for itself. A MIG instance names the GPU that it is part of and its GPU instance id.
    """

    uuid: str
    name: str
    total_bytes: int
    reserved_bytes: int = 0
    physical_uuid: str = ""
    instance: int | None = None

    @property
    def usable_bytes(self) -> int:
        """What programs can have at most; 0 where NVML cannot say."""
        return max(0, self.total_bytes - self.reserved_bytes)


class Kind(IntFlag):
    """The lists of NVML that a process is in."""

    COMPUTE = 1
    GRAPHICS = 2
    MPS = 4
    """A client of the Multi-Process Service: one server process holds the memory of many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuProcess:
    """A process that holds memory on a GPU. `used_bytes` is None where NVML cannot say (WSL, vGPU, confidential computing)."""

    pid: int
    used_bytes: int | None
    kinds: Kind = Kind.COMPUTE


@dataclass(frozen=True, slots=True, kw_only=True)
class Accounted:
    """What the driver's accounting has on a process: the maximum of its memory, and when it began (seconds since the epoch)."""

    pid: int
    peak_bytes: int
    start_time: float
    is_running: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Moment:
    gpu: Gpu
    time: float
    clock: float | None = None

    @property
    def moment(self) -> float:
        """For durations: seconds on a clock that nobody sets."""
        return self.time if self.clock is None else self.clock


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceSample(_Moment):
    """Memory that all programs together hold on a GPU."""

    used_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessSample(_Moment):
    """The processes on a GPU at one instant; a process that is not in it is not on the GPU."""

    processes: tuple[GpuProcess, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountingSample(_Moment):
    """What the driver's accounting says of some processes of a GPU, living or ended."""

    processes: tuple[Accounted, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class XidSample(_Moment):
    """The driver reported an error of a GPU."""

    xid: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadFailed(_Moment):
    """The process list of a GPU could not be read: a gap. It says nothing about the processes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuGone(_Moment):
    """A GPU was lost or its MIG instance was destroyed: whatever ran on it was cut off."""


Sample = DeviceSample | ProcessSample | AccountingSample | XidSample | ReadFailed | GpuGone
