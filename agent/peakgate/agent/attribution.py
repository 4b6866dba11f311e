"""Which job a process on a GPU belongs to, and which of the job's trainings it is a part of.

In order: the control group of a Slurm job, the scheduler's drop-in file, another control group, the process's environment. Each fills what
those before it left open. A file that the group or the user contradicts was left over from another job and is not believed. The environment
is a hint: the user can set it to anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

import structlog

from peakgate.agent.cgroup import SLUID, job_of
from peakgate.agent.drop_ins import JobsOfGpus, believed
from peakgate.agent.host_pids import HostPids
from peakgate.agent.jobs_folder import MAX_ID_LENGTH, JobFile
from peakgate.agent.launch import place_of
from peakgate.agent.owner import Facts, Owner, owner_by
from peakgate.agent.peaks import Attempt
from peakgate.agent.proc import PREDICTION_NAMES, ProcessId, ProcFolder
from peakgate.agent.trainings import Trainings

log = structlog.get_logger("peakgate.agent.attribution")


class Attribution:
    """Finds the owners of processes; /proc is read once a process, the drop-in files at every look."""

    def __init__(self, *, cluster: str, proc: ProcFolder, jobs: JobsOfGpus, host_pids: HostPids | None = None) -> None:
        self._cluster = cluster
        self._proc = proc
        self._jobs = jobs
        self._host_pids = host_pids
        self._trainings = Trainings()
        self._facts: dict[ProcessId, Facts] = {}
        self._owners: dict[tuple[str, ProcessId], tuple[bool, Owner]] = {}
        self._doubted: set[tuple[str, ProcessId]] = set()

    @property
    def refused(self) -> str:
        """Why no process is attributed; empty while all is well."""
        return self._host_pids.refused if self._host_pids else ""

    def owners_on(self, gpu_uuid: str, processes: Iterable[ProcessId]) -> dict[ProcessId, Owner]:
        """The owners of the processes that are on the GPU."""
        listed = list(processes)
        if self._host_pids:
            self._host_pids.look(gpu_uuid, listed)
        if self.refused:
            return dict.fromkeys(listed, Owner(cluster=self._cluster))
        files = self._jobs.jobs_on(gpu_uuid) if listed else ()
        return {process: self._owner(gpu_uuid, process, files) for process in listed}

    def owner_of(self, *, gpu_uuid: str, process: ProcessId) -> Owner:
        """The owner of one process."""
        if self.refused:
            return Owner(cluster=self._cluster)
        return self._owner(gpu_uuid, process, self._jobs.jobs_on(gpu_uuid))

    def are_several(self, attempt: Attempt) -> bool:
        """Whether the attempt's figures are not those of one training with its own prediction."""
        return self._trainings.are_several(attempt)

    def hint(self, *, gpu_uuid: str, process: ProcessId, prediction: str, training: int) -> None:
        """What a process says of its training, over the helper's socket: its prediction, and how many it has had before.

        The prediction fills what the scheduler and the environment left open. Where they name another one, or the process had another
        training before, its figures are those of several.
        """
        facts, (is_named, known) = self._facts.get(process), self._owners.get((gpu_uuid, process), (False, None))
        if facts is None or known is None or (known.prediction == prediction and not training):
            return
        if training or (prediction and known.prediction):
            self._trainings.contradict(known.attempt)
            return
        if not prediction:
            return
        self._facts[process] = replace(facts, prediction=_believable(prediction))
        for place in [place for place in self._owners if place[1] == process]:
            _, owner = self._owners[place]
            self._trainings.leave(owner.attempt, process)
            job = owner.job or prediction
            joined = self._join(process, replace(owner, job=job, prediction=prediction), None, self._facts[process])
            self._owners[place] = is_named, joined

    def newly_several(self) -> list[Attempt]:
        """The attempts that became so since this was last asked."""
        return self._trainings.newly_several()

    def forget(self, *, gpu_uuid: str, process: ProcessId) -> None:
        """The process has left the GPU for good."""
        self._doubted.discard((gpu_uuid, process))
        _, owner = self._owners.pop((gpu_uuid, process), (False, None))
        if not any(other == process for _, other in self._owners):
            self._facts.pop(process, None)
            if owner:
                self._trainings.leave(owner.attempt, process)

    def _owner(self, gpu_uuid: str, process: ProcessId, files: Iterable[JobFile]) -> Owner:
        """Once a drop-in file named the owner, it stays, also when the epilog takes the file away before the process is gone."""
        is_named, known = self._owners.get((gpu_uuid, process), (False, None))
        if known and (is_named or not files):
            return known
        if process not in self._facts:
            self._facts[process] = self._read(process)
        facts = self._facts[process]
        file = self._believed(gpu_uuid, process, tuple(files), facts)
        if known and file is None:
            return known
        owner = self._join(process, owner_by(self._cluster, file, facts), file, facts)
        if known and known.attempt != owner.attempt:
            self._trainings.leave(known.attempt, process)
        self._owners[gpu_uuid, process] = (file is not None, owner)
        return owner

    def _believed(self, gpu_uuid: str, process: ProcessId, files: tuple[JobFile, ...], facts: Facts) -> JobFile | None:
        number = facts.number if facts.cgroup and facts.cgroup.sluid == facts.sluid else ""
        file = believed(files, cgroup=facts.cgroup, number=number, uid=facts.uid)
        if files and not file and (gpu_uuid, process) not in self._doubted:
            self._doubted.add((gpu_uuid, process))
            names = " ".join(file.job for file in files)
            log.warning("job file is not of this process's job", gpu=gpu_uuid, file_job=names, pid=process.pid)
        return file

    def _join(self, process: ProcessId, owner: Owner, file: JobFile | None, facts: Facts) -> Owner:
        if not owner.job:
            return owner
        if file and file.prediction and facts.prediction not in ("", file.prediction):
            self._trainings.contradict(owner.attempt)
        return replace(owner, step=self._trainings.join(owner.attempt, process, facts.place))

    def _read(self, process: ProcessId) -> Facts:
        environment = {name: _believable(value) for name, value in self._proc.environment(process.pid).items()}
        cgroup = job_of(self._proc.cgroup(process.pid))
        sluid, restart = environment.get("SLURM_JOB_SLUID", ""), environment.get("SLURM_RESTART_COUNT", "")
        uid = self._proc.uid(process.pid)
        return Facts(
            cgroup=cgroup,
            place=place_of(proc=self._proc, process=process, cgroup=cgroup),
            prediction=next((environment[name] for name in PREDICTION_NAMES if environment.get(name)), ""),
            sluid=sluid if re.fullmatch(SLUID, sluid) else "",
            number=environment.get("SLURM_JOB_ID", ""),
            restart=int(restart) if restart.isascii() and restart.isdecimal() and len(restart) < 10 else 0,
            uid=-1 if uid is None else uid,
        )


def _believable(text: str) -> str:
    return text if text.isprintable() and len(text) <= MAX_ID_LENGTH else ""
