"""What the schedulers' drop-in files say of a GPU, and whether that is believed of a process on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from peakgate.agent.cgroup import CgroupJob
from peakgate.agent.jobs_folder import JobFile


class JobsOfGpus(Protocol):
    """A folder of drop-in files."""

    def jobs_on(self, gpu_uuid: str) -> Sequence[JobFile]:
        """The jobs that are said to hold the GPU."""
        ...


class DropIns:
    """Several folders; the first that says something of a GPU counts."""

    def __init__(self, *folders: JobsOfGpus) -> None:
        self._folders = folders

    def jobs_on(self, gpu_uuid: str) -> Sequence[JobFile]:
        """The jobs that are said to hold the GPU."""
        return next((jobs for folder in self._folders if (jobs := folder.jobs_on(gpu_uuid))), ())


def believed(files: Sequence[JobFile], *, cgroup: CgroupJob | None, number: str, uid: int) -> JobFile | None:
    """The file that is of this process's job: the one that its control group confirms, else the only one that nothing speaks against.

    `number` is the job number of a process whose group is named by SLUID. A file left over from an earlier job is contradicted by the group
    or by the user, and on a shared GPU several files are possible: then none is believed.
    """
    possible = []
    for file in files:
        same = _same_job(file, cgroup, number)
        if same:
            return file
        if same is None and (uid < 0 or file.uid in (-1, uid)):
            possible.append(file)
    return possible[0] if len(possible) == 1 else None


def _same_job(file: JobFile, cgroup: CgroupJob | None, number: str) -> bool | None:
    """Whether the group's job is the file's; None where they cannot be compared."""
    if cgroup is None or cgroup.kind != "slurm":
        return None
    if cgroup.sluid and file.sluid:
        return cgroup.sluid == file.sluid
    number = cgroup.number or number
    return number == file.job if number and file.job.isdecimal() else None
