"""What one look at the GPUs gives. Times are seconds since the epoch."""

from __future__ import annotations

from dataclasses import dataclass

from peakgate.agent.proc import ProcessId
from peakgate.v1.allocator_report import AllocatorReport


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """A GPU or a MIG instance. `total_bytes` is 0 where NVML cannot say."""

    uuid: str
    name: str
    total_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuProcess:
    """A process that holds memory on a GPU. `used_bytes` is None where NVML cannot say (WSL, vGPU, confidential computing)."""

    pid: int
    used_bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceSample:
    """Memory that all programs together hold on a GPU."""

    gpu: Gpu
    time: float
    used_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessSample:
    """The processes on a GPU at one instant; a process that is not in it is not on the GPU."""

    gpu: Gpu
    time: float
    processes: tuple[GpuProcess, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadFailed:
    """The process list of a GPU could not be read: a gap. It says nothing about the processes."""

    gpu: Gpu
    time: float


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuGone:
    """A GPU was lost or its MIG instance was destroyed: whatever ran on it was cut off."""

    gpu: Gpu
    time: float


@dataclass(frozen=True, slots=True, kw_only=True)
class HelperSample:
    """What a process that is on the GPU has said of its own memory there."""

    gpu: Gpu
    time: float
    process: ProcessId
    report: AllocatorReport


Sample = DeviceSample | ProcessSample | ReadFailed | GpuGone | HelperSample
