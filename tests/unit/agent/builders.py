"""Builders with full defaults for the agent's tests, a /proc made of files, and a node whose NVML is simulated."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from random import Random

from peakgate.agent.event_thread import EventThread
from peakgate.agent.nvml import Nvml
from peakgate.agent.nvml_module import load_pynvml
from peakgate.agent.peaks import NO_FLAGS, Flag, JobEvent, PeakKey, PeakRow
from peakgate.agent.sampler import Sampler
from peakgate.agent.samples import Gpu, GpuProcess, ProcessSample, Sample
from peakgate.agent.simulated.library import SimulatedNvml

GIB = 1 << 30
START = 1_800_000_000.0
"""Wall time of scenario second 0."""
GPU = "GPU-00000000-0000-4000-8000-000000000000"
OTHER_GPU = "GPU-00000000-0000-4000-8000-000000000001"
H100 = "total=81559M reserved=480M name=NVIDIA_H100_80GB_HBM3"
ONE_GPU = f"gpu 0 uuid={GPU} {H100}\n"
TWO_GPUS = f"{ONE_GPU}gpu 1 uuid={OTHER_GPU} {H100}\n"


def a_gpu(uuid: str = GPU, total_bytes: int = 80 * GIB) -> Gpu:
    """An H100."""
    return Gpu(uuid=uuid, name="NVIDIA H100 80GB HBM3", total_bytes=total_bytes)


def a_list(time: float, used: Mapping[int, int | None], *, gpu: Gpu | None = None) -> ProcessSample:
    """A process list: memory by pid."""
    return ProcessSample(
        gpu=gpu or a_gpu(), time=time, processes=tuple(GpuProcess(pid=pid, used_bytes=value) for pid, value in used.items())
    )


def a_key(*, pid: int = 4242, job: str = "402", gpu_uuid: str = GPU, cluster: str = "alpha", boot_id: str = "boot-1") -> PeakKey:
    """The key of a sampled process of a Slurm job."""
    return PeakKey(
        cluster=cluster,
        boot_id=boot_id,
        gpu_uuid=gpu_uuid,
        job=job,
        restart=0,
        prediction="predictions/p1",
        pid=pid,
        pid_start_ticks=100,
        source="sampled",
    )


def a_row(
    key: PeakKey | None = None, *, peak_bytes: int = GIB, time: float = START, flags: Flag = NO_FLAGS, ended: bool = False
) -> PeakRow:
    """A row seen once."""
    return PeakRow(
        key=key or a_key(),
        gpu_name="NVIDIA H100 80GB HBM3",
        gpu_total_bytes=80 * GIB,
        peak_bytes=peak_bytes,
        peak_time=time,
        first_time=time,
        last_time=time,
        flags=flags,
        ended=ended,
    )


def an_event(job: str = "402") -> JobEvent:
    """The end of a job."""
    return JobEvent(cluster="alpha", job=job, restart=0, prediction="predictions/p1", event="finished", time=START)


def with_pid(row: PeakRow, pid: int) -> PeakRow:
    """The same row for another process."""
    return replace(row, key=replace(row.key, pid=pid))


class ProcTree:
    """A folder that looks like /proc."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def add(
        self,
        pid: int,
        *,
        start_ticks: int = 100,
        cgroup: str = "",
        environment: dict[str, str] | None = None,
        uid: int = 1000,
        parent: int = 0,
        group: int = 0,
        session: int = 0,
        executable: str = "/usr/bin/python3.11",
    ) -> None:
        """A process, in place of any that had this pid."""
        folder = self.root / str(pid)
        folder.mkdir(parents=True, exist_ok=True)
        fields = ["S", str(parent), str(group), str(session), *["0"] * 15, str(start_ticks), *["0"] * 30]
        (folder / "exe").unlink(missing_ok=True)
        (folder / "exe").symlink_to(executable)
        (folder / "stat").write_text(f"{pid} (a (strange) name) {' '.join(fields)}\n")
        (folder / "status").write_text(f"Name:\ttrain\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\n")
        (folder / "cgroup").write_text(cgroup)
        (folder / "environ").write_text("".join(f"{name}={value}\0" for name, value in (environment or {}).items()))

    def remove(self, pid: int) -> None:
        """The process is gone."""
        for path in (self.root / str(pid)).iterdir():
            path.unlink()
        (self.root / str(pid)).rmdir()


def write_job_file(folder: Path, gpu_uuid: str, **fields: object) -> Path:
    """A drop-in file as a prolog writes it."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{gpu_uuid}.json"
    path.write_text(json.dumps(fields))
    return path


class SimulatedNode:
    """A sampler over the real pynvml over the simulated library, with the scenario's clock as the only clock."""

    def __init__(
        self,
        simulated: SimulatedNvml,
        scenario: str,
        *,
        uniform: Callable[[float, float], float] | None = None,
        call_clock: Callable[[], float] = lambda: 0.0,
        events: bool = False,
        enable_accounting: bool = False,
    ) -> None:
        simulated.load(scenario)
        simulated.set_time(0.0)
        self.simulated = simulated
        self.now = 0.0
        self.nvml = Nvml(module=load_pynvml())
        self.nvml.start()
        self.sampler = Sampler(
            nvml=self.nvml,
            clock=self.clock,
            wall=lambda: START + self.now,
            uniform=uniform or Random(7).uniform,
            events=EventThread(nvml=self.nvml) if events else None,
            enable_accounting=enable_accounting,
            call_clock=call_clock,  # by default a call takes no time: the machine's load must not stretch a period
        )

    def clock(self) -> float:
        """Scenario seconds."""
        return self.now

    def run(self, until: float) -> list[Sample]:
        """All samples up to this scenario second."""
        samples: list[Sample] = []
        while self.now <= until:
            self.simulated.set_time(self.now)
            samples += self.sampler.poll()
            self.now += max(self.sampler.wait_seconds(), 1e-6)
        return samples
