"""Which job a process on a GPU belongs to.

In order: the scheduler's drop-in file, the kernel's control group, the process's environment. The first says who, the others fill what it
left open. A drop-in file that contradicts the job number in the control group is left over from an earlier job and is not believed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import structlog

from peakgate.agent.cgroup import CgroupJob, job_of
from peakgate.agent.jobs_folder import JobFile, JobsFolder
from peakgate.agent.proc import ProcessId, ProcFolder

MAX_ID_LENGTH = 200
"""Longer ids in an environment are somebody's mistake or mischief."""

log = structlog.get_logger("peakgate.agent.attribution")


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """A job attempt. `job` empty: unattributed, yet reported. `uid` is -1 when it is not known.

    A process outside every scheduler that carries a prediction is a job of its own, named by the prediction.
    """

    cluster: str
    job: str = ""
    restart: int = 0
    prediction: str = ""
    uid: int = -1

    @property
    def attempt(self) -> tuple[str, str, int, str]:
        """What tells one attempt from another: cluster, job, restart, prediction."""
        return self.cluster, self.job, self.restart, self.prediction


@dataclass(frozen=True, slots=True)
class _Facts:
    """What /proc said about a process when it was first seen; it does not change while the process lives."""

    cgroup: CgroupJob | None
    prediction: str
    slurm_job: str
    restart: int
    uid: int


class Attribution:
    """Finds the owner of a process; /proc is read once a process, the drop-in file at every look."""

    def __init__(self, *, cluster: str, proc: ProcFolder, jobs: JobsFolder) -> None:
        self._cluster = cluster
        self._proc = proc
        self._jobs = jobs
        self._facts: dict[ProcessId, _Facts] = {}
        self._owners: dict[tuple[str, ProcessId], tuple[bool, Owner]] = {}

    def owner_of(self, *, gpu_uuid: str, process: ProcessId) -> Owner:
        """The owner. Once a drop-in file named it, it stays, also when the epilog takes the file away before the process is gone."""
        named, known = self._owners.get((gpu_uuid, process), (False, None))
        if named and known:
            return known
        if process not in self._facts:
            self._facts[process] = self._read(process)
        facts = self._facts[process]
        file = self._jobs.job_on(gpu_uuid)
        if file and _contradicts(file, facts):
            log.warning("job file left over from another job", gpu=gpu_uuid, file_job=file.job, pid=process.pid)
            file = None
        if known and file is None:
            return known
        owner = _owner(self._cluster, file, facts)
        self._owners[gpu_uuid, process] = (file is not None, owner)
        return owner

    def forget(self, *, gpu_uuid: str, process: ProcessId) -> None:
        """The process has left the GPU for good."""
        self._owners.pop((gpu_uuid, process), None)
        if not any(other == process for _, other in self._owners):
            self._facts.pop(process, None)

    def _read(self, process: ProcessId) -> _Facts:
        environment = self._proc.environment(process.pid)
        restart = environment.get("SLURM_RESTART_COUNT", "")
        uid = self._proc.uid(process.pid)
        return _Facts(
            cgroup=job_of(self._proc.cgroup(process.pid)),
            prediction=_believable(environment.get("PEAKGATE_PREDICTION", "")),
            slurm_job=_believable(environment.get("SLURM_JOB_ID", "")),
            restart=int(restart) if restart.isdecimal() and len(restart) < 10 else 0,
            uid=-1 if uid is None else uid,
        )


def _owner(cluster: str, file: JobFile | None, facts: _Facts) -> Owner:
    if file:
        return Owner(
            cluster=file.cluster or cluster,
            job=file.job,
            restart=file.restart,
            prediction=file.prediction or facts.prediction,
            uid=facts.uid,
        )
    owner = Owner(cluster=cluster, restart=facts.restart, prediction=facts.prediction, uid=facts.uid)
    return replace(owner, job=facts.cgroup.job if facts.cgroup else facts.slurm_job or facts.prediction)


def _contradicts(file: JobFile, facts: _Facts) -> bool:
    """Both name a Slurm job by number, and not the same."""
    if facts.cgroup is None or facts.cgroup.kind != "slurm":
        return False
    return facts.cgroup.job.isdecimal() and file.job.isdecimal() and facts.cgroup.job != file.job


def _believable(text: str) -> str:
    return text if text.isprintable() and len(text) <= MAX_ID_LENGTH else ""
