"""The drop-in files /run/peakgate/jobs/<gpu uuid>.json that a prolog writes: {cluster, job, restart, prediction, user}."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import structlog

JOBS_FOLDER = Path("/run/peakgate/jobs")
MAX_FILE_BYTES = 64 << 10

log = structlog.get_logger("peakgate.agent.jobs_folder")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFile:
    """What the scheduler says runs on a GPU. Empty: not stated."""

    job: str
    cluster: str = ""
    restart: int = 0
    prediction: str = ""
    user: str = ""


@dataclass(slots=True)
class _Known:
    """What a file held when it last changed."""

    path: Path
    state: tuple[int, int, int] | None = None
    job: JobFile | None = None


class JobsFolder:
    """Reads a drop-in file when it has changed; one that is not as agreed is logged once and counts as absent."""

    def __init__(self, *, folder: Path = JOBS_FOLDER) -> None:
        self._folder = folder
        self._known: dict[str, _Known] = {}

    def job_on(self, gpu_uuid: str) -> JobFile | None:
        """The job that holds the GPU, or None."""
        known = self._known.get(gpu_uuid)
        if known is None:
            known = self._known[gpu_uuid] = _Known(path=self._folder / f"{gpu_uuid}.json")
        try:
            status = known.path.stat()
        except OSError:
            known.state, known.job = None, None
            return None
        state = (status.st_mtime_ns, status.st_size, status.st_ino)
        if state != known.state:
            known.state, known.job = state, _read(known.path)
        return known.job


def _read(path: Path) -> JobFile | None:
    try:
        with path.open(encoding="utf-8") as file:
            return _parse(file.read(MAX_FILE_BYTES))
    except (OSError, ValueError) as error:
        log.warning("job file not understood", file=str(path), problem=str(error))
        return None


def _parse(text: str) -> JobFile:
    document = json.loads(text)
    if not isinstance(document, dict):
        raise ValueError("the file must hold one JSON object")  # noqa: TRY004 (one kind of error for one kind of trouble)
    words = {name: document.get(name, "") for name in ("cluster", "job", "prediction", "user")}
    restart = document.get("restart", 0)
    if isinstance(restart, bool) or not isinstance(restart, int) or restart < 0:
        raise ValueError(f"restart must be a whole number from 0, not {restart!r}")
    for name, value in words.items():
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise ValueError(f"{name} must be text, not {value!r}")  # noqa: TRY004
    if words["job"] == "":
        raise ValueError("job is missing")
    return JobFile(restart=restart, **{name: str(value) for name, value in words.items()})
