"""Drop-in files that a site already writes for another program. They are only read; they say which job holds a GPU, and nothing more.

- dcgm-exporter's job mapping (internal/pkg/transformation/hpc.go, d5e5f51): a folder of files named by the GPU's number, or by number and
  GPU instance id with a dot between; a job id a line.
- jobstats (slurm/prolog.d/gpustats_helper.sh, docs/setup/gpu_node_scripts.md; read by plazonic/nvidia_gpu_prometheus_exporter): a folder
  of files named by UUID, by number, or by number and instance; one line, the job id and the user's number.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import structlog

from peakgate.agent.gpu_numbers import GpuNumbers
from peakgate.agent.jobs_folder import JobFile
from peakgate.agent.watched_file import WatchedFile

JOBSTATS_FOLDER = Path("/run/gpustat")
MAX_JOB_LENGTH = 100
"""A job id with array and step is shorter; what is longer is another file."""
ABSENT_SECONDS = 10.0
"""A folder that is not there is looked for this often: most sites have none."""

NumbersOf = Callable[[str], GpuNumbers | None]
Parse = Callable[[str], tuple[JobFile, ...]]

log = structlog.get_logger("peakgate.agent.site_folders")


class SiteFolder:
    """One of the two. `meaning` is a word of gpu_numbers.NUMBERS; the first file of a GPU that exists counts."""

    def __init__(
        self,
        *,
        folder: Path,
        parse: Parse,
        by_uuid: bool,
        meaning: str,
        numbers_of: NumbersOf,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._folder = folder
        self._parse = parse
        self._by_uuid = by_uuid
        self._meaning = meaning
        self._numbers_of = numbers_of
        self._clock = clock
        self._absent_until = float("-inf")
        self._files: dict[str, WatchedFile[tuple[JobFile, ...]]] = {}
        self._unclear: set[str] = set()

    def jobs_on(self, gpu_uuid: str) -> tuple[JobFile, ...]:
        """The jobs that the folder names for the GPU; none where it is not certain which GPU a number means."""
        if not self._exists():
            return ()
        for name in self._names(gpu_uuid):
            if name not in self._files:
                self._files[name] = WatchedFile(f"{self._folder}/{name}", self._parse)
            jobs = self._files[name].value()
            if jobs is not None:
                return jobs
        return ()

    def _exists(self) -> bool:
        now = self._clock()
        if now < self._absent_until:
            return False
        if self._folder.is_dir():
            return True
        self._absent_until = now + ABSENT_SECONDS
        return False

    def _names(self, gpu_uuid: str) -> Iterator[str]:
        if self._by_uuid:
            yield gpu_uuid
        numbers = self._numbers_of(gpu_uuid)
        if numbers is None:
            return
        name = numbers.name(self._meaning)
        if name is not None:
            yield name
        elif gpu_uuid not in self._unclear:
            self._unclear.add(gpu_uuid)
            remedy = "say --gpu-numbers index or minor, whichever the prolog writes"
            log.warning(
                "files named by a number are not read",
                folder=str(self._folder),
                gpu=gpu_uuid,
                index=numbers.index,
                minor=numbers.minor,
                remedy=remedy,
            )


def dcgm_folder(*, folder: Path, meaning: str, numbers_of: NumbersOf, clock: Callable[[], float] = time.monotonic) -> SiteFolder:
    """The folder that dcgm-exporter is given by --hpc-job-mapping-dir."""
    return SiteFolder(folder=folder, parse=_dcgm_jobs, by_uuid=False, meaning=meaning, numbers_of=numbers_of, clock=clock)


def jobstats_folder(*, folder: Path, meaning: str, numbers_of: NumbersOf, clock: Callable[[], float] = time.monotonic) -> SiteFolder:
    """The folder that jobstats' prolog writes."""
    return SiteFolder(folder=folder, parse=_jobstats_job, by_uuid=True, meaning=meaning, numbers_of=numbers_of, clock=clock)


def _dcgm_jobs(text: str) -> tuple[JobFile, ...]:
    jobs = [line.strip() for line in text.splitlines() if line.strip()]
    return tuple(JobFile(job=_job(job)) for job in dict.fromkeys(jobs))


def _jobstats_job(text: str) -> tuple[JobFile, ...]:
    words = text.split()
    if not words:
        return ()  # a prolog is about to write it
    if len(words) > 2 or not all(word.isascii() and word.isdecimal() and len(word) < 20 for word in words):
        raise ValueError(f"the file must hold a job id and a user's number, not {text[:MAX_JOB_LENGTH]!r}")
    return (JobFile(job=words[0], uid=int(words[1]) if len(words) == 2 else -1),)


def _job(text: str) -> str:
    if not text.isprintable() or len(text) > MAX_JOB_LENGTH:
        raise ValueError(f"no job id: {text[:MAX_JOB_LENGTH]!r}")
    return text
