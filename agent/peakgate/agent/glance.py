"""One look at this node, for a person: nothing is sent and nothing is kept."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from pathlib import Path

from peakgate.agent.attribution import Attribution
from peakgate.agent.errors import NvmlError
from peakgate.agent.jobs_folder import JobsFolder
from peakgate.agent.nvml import Nvml
from peakgate.agent.owner import Owner
from peakgate.agent.proc import ProcessId, ProcFolder
from peakgate.agent.sampler import Sampler
from peakgate.agent.samples import AccountingSample, DeviceSample, Gpu, GpuProcess, ProcessSample


@dataclass(slots=True, kw_only=True)
class SeenProcess:
    """A process on a GPU, whose it is, and the driver's own maximum where it keeps one."""

    process: GpuProcess
    owner: Owner
    accounted_bytes: int | None = None


@dataclass(slots=True, kw_only=True)
class SeenGpu:
    """A GPU and what is on it. `used_bytes` None: it cannot say."""

    gpu: Gpu
    used_bytes: int | None = None
    processes: dict[int, SeenProcess] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class Glance:
    """All GPUs that answer; `problem` says why there are none."""

    driver: str = ""
    gpus: dict[str, SeenGpu] = field(default_factory=dict)
    problem: str = ""


def glance(*, nvml: Nvml, cluster: str, jobs_folder: Path) -> Glance:
    """Looks. A node without a driver has no GPUs, which is no error."""
    proc = ProcFolder()
    attribution = Attribution(cluster=cluster, proc=proc, jobs=JobsFolder(folder=jobs_folder))
    seen = Glance()
    sampler = Sampler(nvml=nvml)
    try:
        seen.driver = nvml.start()
        for sample in sampler.poll():
            known = seen.gpus.setdefault(sample.gpu.uuid, SeenGpu(gpu=sample.gpu))
            match sample:
                case DeviceSample():
                    known.used_bytes = sample.used_bytes
                case ProcessSample():
                    known.processes = {one.pid: _owned(attribution, proc, sample.gpu, one) for one in sample.processes}
                case AccountingSample():
                    for accounted in sample.processes:
                        if accounted.pid in known.processes:
                            known.processes[accounted.pid].accounted_bytes = accounted.peak_bytes
    except NvmlError as error:
        seen.problem = str(error)
    finally:
        with contextlib.suppress(NvmlError):
            nvml.stop()
    return seen


def _owned(attribution: Attribution, proc: ProcFolder, gpu: Gpu, process: GpuProcess) -> SeenProcess:
    identity = ProcessId(process.pid, proc.start_ticks(process.pid) or 0)
    return SeenProcess(process=process, owner=attribution.owner_of(gpu_uuid=gpu.uuid, process=identity))
