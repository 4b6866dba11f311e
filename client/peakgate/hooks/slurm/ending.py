"""Tells the service how jobs of Slurm ended: one that just did (EpilogSlurmctld), or all of sacct's (sites without an epilog)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping

from peakgate.client.connect import Client
from peakgate.client.errors import InputError, ServiceError
from peakgate.client.imports.deliver import NOT_KNOWN, NOT_NAMED
from peakgate.client.imports.job import Fate, Imported, ImportedJob
from peakgate.client.imports.sacct import read_sacct
from peakgate.client.imports.sacct_text import COMMAND
from peakgate.hooks.slurm.joining import ended_job, event_request, with_out_of_memory
from peakgate.hooks.slurm.scontrol import ScontrolError, run, unavailable

PAUSES_SECONDS = (0.2, 0.3, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0)
"""Between two looks at a job that is still completing: a node that does not answer holds one up for as long as it is down."""

Look = Callable[[str], str]


def job_that_ended(environment: Mapping[str, str], *, look: Look, pause: Callable[[float], None] = time.sleep) -> ImportedJob | None:
    """The job of an epilog's environment; None where it does not end while we look. Raises InputError outside of one."""
    number, restart = environment.get("SLURM_JOB_ID", ""), environment.get("SLURM_JOB_RESTART_COUNT", "0")
    if not number.isdigit():
        raise InputError("SLURM_JOB_ID is no number: this is called by EpilogSlurmctld", reason="USAGE")
    for seconds in (*PAUSES_SECONDS, 0.0):
        job = ended_job(look(number), cluster=environment.get("SLURM_CLUSTER_NAME", ""), restart=int(restart) if restart.isdigit() else 0)
        if job is not None:
            return job
        pause(seconds)
    return None


def scontrol(number: str) -> str:
    """What the controller knows of a job. Raises InputError."""
    return _output("scontrol", "show", "job", "-o", number)


def sacct(since: str) -> str:
    """The accounting of all users' jobs since a time of sacct's own forms. Raises InputError."""
    return _output(*(f"--starttime={since}" if word.startswith("--starttime=") else word for word in COMMAND.split()))


def _output(*command: str) -> str:
    try:
        return run(*command)
    except ScontrolError as error:
        raise unavailable(error) from error


def ended_in(text: str, *, where: str, mapping: Mapping[str, str]) -> list[ImportedJob]:
    """The jobs of sacct's output that have ended, with or without figures of GPU memory."""
    return [job for job in read_sacct(text, where=where, mapping=mapping) if job.event]


def tell(client: Client, jobs: Iterable[ImportedJob]) -> Iterator[Imported]:
    """Reports each job's end, and says what became of it. A repeat changes nothing. Raises ServiceError when nobody answers."""
    for job in jobs:
        if not job.prediction:
            yield Imported(job=job, fate=Fate.NOT_JOINED, why=NOT_NAMED)
            continue
        try:
            stored = client.get_prediction(job.prediction)
        except ServiceError as error:
            if error.code != "NOT_FOUND":
                raise
            yield Imported(job=job, fate=Fate.NOT_JOINED, why=NOT_KNOWN)
            continue
        told = with_out_of_memory(job, stored)
        client.report_job_event(event_request(told))
        yield Imported(job=told, fate=Fate.STORED, kind=told.event)
