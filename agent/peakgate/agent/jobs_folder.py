"""The drop-in files /run/peakgate/jobs/<gpu uuid>.json that a prolog writes: {cluster, job, sluid, restart, prediction, user}."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from peakgate.agent.watched_file import WatchedFile

JOBS_FOLDER = Path("/run/peakgate/jobs")
MAX_ID_LENGTH = 200
"""Longer ids in a file or an environment are somebody's mistake or mischief; the service takes no row with one above 256."""
MAX_RESTART = (1 << 31) - 1
"""No scheduler restarts a job so often: a larger one is another number, which nobody's attempt has."""
WORDS = ("job", "sluid", "cluster", "prediction", "user")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFile:
    """What the scheduler says runs on a GPU. Empty: not stated. `uid` is -1 when it is not."""

    job: str
    cluster: str = ""
    sluid: str = ""
    restart: int = 0
    prediction: str = ""
    user: str = ""
    uid: int = -1


class JobsFolder:
    """Reads a drop-in file when it has changed; one that is not as agreed is logged once and counts as absent."""

    def __init__(self, *, folder: Path = JOBS_FOLDER) -> None:
        self._folder = folder
        self._files: dict[str, WatchedFile[JobFile]] = {}

    def job_on(self, gpu_uuid: str) -> JobFile | None:
        """The job that holds the GPU, or None."""
        if gpu_uuid not in self._files:
            self._files[gpu_uuid] = WatchedFile(f"{self._folder}/{gpu_uuid}.json", _parse)
        return self._files[gpu_uuid].value()

    def jobs_on(self, gpu_uuid: str) -> tuple[JobFile, ...]:
        """The same as a list of at most one."""
        job = self.job_on(gpu_uuid)
        return (job,) if job else ()


def _parse(text: str) -> JobFile:
    document = json.loads(text)
    if not isinstance(document, dict):
        raise ValueError("the file must hold one JSON object")  # noqa: TRY004 (one kind of error for one kind of trouble)
    words = {name: document.get(name, "") for name in WORDS}
    restart = document.get("restart", 0)
    if isinstance(restart, bool) or not isinstance(restart, int) or not 0 <= restart <= MAX_RESTART:
        raise ValueError(f"restart must be a whole number from 0 to {MAX_RESTART}")
    for name, value in words.items():
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise ValueError(f"{name} must be text, not {value!r}")  # noqa: TRY004 (as above)
        if len(str(value)) > MAX_ID_LENGTH or not str(value).isprintable():
            raise ValueError(f"{name} must be a line of at most {MAX_ID_LENGTH} characters")
    if words["job"] == "":
        raise ValueError("job is missing")
    job, sluid, cluster, prediction, user = (str(words[name]) for name in WORDS)
    return JobFile(job=job, sluid=sluid, cluster=cluster, restart=restart, prediction=prediction, user=user)
