"""Whose a process is: what each source says of it, put together. The order of the sources is told in attribution.py."""

from __future__ import annotations

from dataclasses import dataclass

from peakgate.agent.cgroup import CgroupJob
from peakgate.agent.jobs_folder import JobFile
from peakgate.agent.launch import Place
from peakgate.agent.peaks import OfTraining


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner(OfTraining):
    """A job attempt. `job` empty: unattributed, yet reported. `uid` is -1 when it is not known.

    A process outside every scheduler that carries a prediction is a job of its own, named by the prediction. Where `job` is a SLUID,
    `slurm_job` is the number that people know. `step` tells the trainings of one attempt apart; it is empty for the first of them.
    """

    cluster: str
    job: str = ""
    restart: int = 0
    prediction: str = ""
    uid: int = -1
    step: str = ""
    slurm_job: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What /proc said about a process when it was first seen. Only `prediction` changes while it lives, when its helper names one.

    `sluid` and `number` are the environment's: hints.
    """

    cgroup: CgroupJob | None
    place: Place
    prediction: str
    sluid: str
    number: str
    restart: int
    uid: int


def owner_by(cluster: str, file: JobFile | None, facts: Facts) -> Owner:
    """The owner by the file that is believed and by what /proc said; `cluster` is the agent's own."""
    job, slurm_job = _job(file, facts)
    return Owner(
        cluster=(file.cluster if file else "") or cluster,
        job=job,
        slurm_job=slurm_job,
        restart=(file.restart if file else 0) or facts.restart,  # Slurm does not tell a prolog how often the job was restarted
        prediction=(file.prediction if file else "") or facts.prediction,
        uid=facts.uid,
    )


def _job(file: JobFile | None, facts: Facts) -> tuple[str, str]:
    """The job's key, and where that is a SLUID the job's number. A SLUID is of one run of a job, so it is the key wherever it is known."""
    cgroup = facts.cgroup
    if cgroup and cgroup.kind == "slurm":
        sluid = cgroup.sluid or (file.sluid if file else "")
        number = cgroup.number or (file.job if file else "") or (facts.number if facts.sluid == sluid else "")
        return (sluid, number) if sluid else (number, "")
    if file:
        return (file.sluid, file.job) if file.sluid else (file.job, "")
    if cgroup:
        return cgroup.job, ""
    return (facts.sluid, facts.number) if facts.sluid else (facts.number or facts.prediction, "")
