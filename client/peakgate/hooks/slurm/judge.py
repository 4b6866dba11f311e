"""Reads a submission with the submitter's own rights, and asks whether it fits: of the service, or in this process when that is away."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from peakgate.client.errors import AWAY, InputError, PeakgateError
from peakgate.client.launches import launch_command
from peakgate.client.source import Source
from peakgate.hooks.slurm.submit_settings import SubmitSettings, submitter
from peakgate.readers.files import Files, FolderFiles, GivenFiles, LayeredFiles
from peakgate.readers.read import UNKNOWN
from peakgate.v1.prediction_pb2 import PredictResponse
from peakgate.v1.training_job_pb2 import TrainingJob

PREDICTED_HERE = "predicted on this host, the service did not answer"
NO_SERVICE = "predicted on this host, no service is named"

_NAME = re.compile(r"\$\{?([A-Za-z_]\w*)")
_LEFT_OUT = re.compile(r"(SLURM|SBATCH|PEAKGATE)_|(HOME|PWD|PATH|USER|SHELL|TMPDIR|LD_LIBRARY_PATH)$")
LONGEST_VALUE = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """What is submitted: the program, Slurm's options of one component, the script (its name, text and arguments) or the command.

    `folder`: where the job begins; `environment`: what a script inherits; `stated`: words of the job document from a comment.
    """

    program: str
    options: Sequence[str] = ()
    behind: Sequence[str] = ()
    script: str = ""
    folder: Path = Path()
    environment: Mapping[str, str] | None = None
    stated: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """The answer to a source's job; `unserved`: why it is not the service's, empty where it is."""

    source: Source
    job: TrainingJob
    answer: PredictResponse
    unserved: str = ""


def source_of(launch: Launch) -> Source | None:
    """The job of a submission; None where no reader knows what it runs, which is then no training. An error stands in the job's place."""
    source = launch_command(_words(launch), _files(launch))
    if isinstance(source.job, InputError) and source.job.reason == "LAUNCH_UNKNOWN":
        return None
    if isinstance(source.job, PeakgateError) and UNKNOWN in source.job.message:
        return None
    return source


def judge(source: Source, settings: SubmitSettings, *, try_reason: str = "", is_test: bool = False) -> Judged:
    """The answer. `is_test`: nothing will be submitted, so nothing is stored. Raises PeakgateError."""
    job = source.required()
    ask = partial(_ask, source, job, validate_only=is_test, user=submitter(settings), try_reason=try_reason)
    if settings.server:
        try:
            return ask(server=settings.server, deadline_seconds=settings.deadline_seconds)
        except PeakgateError as error:
            if error.code not in AWAY:
                raise
    return ask(server="", deadline_seconds=0.0, unserved=PREDICTED_HERE if settings.server else NO_SERVICE)


def _ask(
    source: Source,
    job: TrainingJob,
    *,
    server: str,
    deadline_seconds: float,
    validate_only: bool,
    user: str,
    try_reason: str,
    unserved: str = "",
) -> Judged:
    from peakgate.client.connect import Asker, Client, connect, open_embedded_client  # gRPC, which most submissions never need
    from peakgate.client.unknown_model import ask

    @contextmanager
    def client() -> Iterator[Client]:
        with connect(server, predict_timeout_seconds=deadline_seconds) if server else open_embedded_client() as opened:
            yield opened

    asked: list[TrainingJob] = []
    with client() as opened:

        def call(wanted: TrainingJob) -> PredictResponse:
            asked[:] = [wanted]
            return opened.predict(wanted, validate_only=validate_only, asker=Asker(user=user, try_reason=try_reason))

        answer = ask(call, job, source)
    return Judged(source=source, job=asked[0], answer=source.checked(answer), unserved=unserved)


def _words(launch: Launch) -> list[str]:
    """The submission as one command; variables of the submitter that a script names stand in front, as it inherits them."""
    variables = _inherited(launch)
    before = ["env", *(f"{name}={value}" for name, value in variables.items())] if variables else []
    if launch.stated:  # what a comment states goes as a line of a script that holds the command
        return [*before, "sbatch", *launch.options, _WRITTEN]
    return [*before, launch.program, *launch.options, *launch.behind]


_WRITTEN = "command"


def _inherited(launch: Launch) -> dict[str, str]:
    environment = launch.environment or {}
    names = dict.fromkeys(_NAME.findall(launch.script))
    found = {name: environment[name] for name in names if name in environment and not _LEFT_OUT.match(name)}
    return {name: value for name, value in found.items() if len(value) <= LONGEST_VALUE}


def _files(launch: Launch) -> Files:
    command = shlex.join(launch.behind) or "interactive"
    given = {_WRITTEN: f"#!/bin/sh\n#PEAKGATE {launch.stated}\n{command}\n"} if launch.stated else {}
    if launch.program == "sbatch" and launch.behind and launch.script:
        given[launch.behind[0]] = launch.script
    beside = Path(launch.behind[0]).parent if launch.behind else Path()
    folders = dict.fromkeys((launch.folder, Path(), beside))
    return LayeredFiles((GivenFiles(given), *(FolderFiles(folder) for folder in folders)))
