"""`peakgate diagnose`: what an out-of-memory failure was."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from peakgate.client.options import Database, Gpu, Output, OutputForm, Server

if TYPE_CHECKING:
    from peakgate.client.diagnose.diagnosis import Judged
    from peakgate.client.source import Source


class Moment(StrEnum):
    """Stages that a user can name."""

    load = "load"
    setup = "setup"
    forward = "forward"
    loss = "loss"
    backward = "backward"
    first_step = "first-step"
    longer_context = "longer-context"
    hours_later = "hours-later"
    evaluation = "evaluation"
    generation = "generation"
    save = "save"


_HELP = "The log or the traceback, - for standard input; then the job, as predict takes it, for its sizes and its fixes."
Words = Annotated[list[str] | None, typer.Argument(metavar="[LOG] [JOB|-- COMMAND]", help=_HELP)]
When = Annotated[
    Moment | None, typer.Option("--stage", help="When it happened. With it the log may be left out: one word then is the job.")
]


def diagnose(
    *,
    words: Words = None,
    stage: When = None,
    gpu: Gpu = None,
    server: Server = None,
    db: Database = None,
    output: OutputForm = Output.table,
) -> None:
    """Reads an out-of-memory failure: what ran out, when, which tensor asked for it, what acts on it, and what does not.

    Exit status: 0 when something can be said, 2 otherwise.
    """
    from peakgate.client.asked import jobs_and_command
    from peakgate.client.diagnose.as_dict import as_dict
    from peakgate.client.diagnose.diagnosis import diagnose as diagnosed
    from peakgate.client.diagnose.find import find_failure
    from peakgate.client.diagnose.logs import windows
    from peakgate.client.errors import InputError
    from peakgate.client.output import human_console, write_json
    from peakgate.client.render.diagnosis import print_diagnosis

    paths, command = jobs_and_command(words or [], sys.argv)
    log, jobs = _log_and_jobs(paths, command, staged=stage is not None)
    failure = find_failure(windows(log, sys.stdin.buffer)) if log else None
    if failure is None and stage is None:
        raise InputError(_nothing(log), reason="FAILURE_NOT_FOUND" if log else "USAGE")
    capacity = failure.message.bytes_of("capacity") if failure else None
    judged = _judged_if_there(lambda: _judged(jobs, command, gpu, server, db, capacity))
    found = diagnosed(failure, stage.value if stage else "", judged)
    if output is not Output.table:
        write_json(as_dict(found), output)
    print_diagnosis(human_console(output), found)


def _nothing(log: str) -> str:
    if log:
        return f"{log} shows no failure of memory that is known; say when it happened with --stage"
    return "neither a log nor --stage is given: peakgate diagnose train.log, or peakgate diagnose --stage forward"


def _log_and_jobs(paths: Sequence[str], command: Sequence[str], *, staged: bool) -> tuple[str, list[str]]:
    """The log, empty without one, and at most one path of a job."""
    from peakgate.client.errors import InputError

    if len(paths) > 2 or (len(paths) == 2 and command):
        raise InputError(f"a log and one job are taken, not {len(paths)} files", reason="USAGE")
    if staged and len(paths) == 1 and not command:
        return "", list(paths)
    return (paths[0], list(paths[1:])) if paths else ("", [])


def _judged_if_there(ask: Callable[[], Judged | None]) -> Judged | None:
    """The job, or None and a word on standard error when the service is away: what the log says can be said without it."""
    from peakgate.client.errors import UNAVAILABLE_STATUS, ServiceError
    from peakgate.client.output import error_console
    from peakgate.client.render.answer import print_error

    try:
        return ask()
    except ServiceError as error:
        if error.exit_status != UNAVAILABLE_STATUS:
            raise
        print_error(error_console(), "the job is left out", error)
        return None


def _judged(
    jobs: list[str], command: list[str], gpu: str | None, server: str | None, db: str | None, capacity: int | None
) -> Judged | None:
    """The job with the service's advice, on the card that the message names where the job names none; None without a job."""
    from peakgate.client.connect import open_client
    from peakgate.client.diagnose.diagnosis import Judged
    from peakgate.client.diagnose.dimensions import dimensions_of
    from peakgate.client.origin import naming_places
    from peakgate.client.sources import read_source
    from peakgate.client.unknown_model import ask

    if not jobs and not command:
        return None
    source: Source = read_source(jobs, sys.stdin.buffer, command).on(gpu)
    with open_client(server, db) as client, naming_places(source.origin):
        with client.naming_every_field():
            job = source.required()
        if capacity and not job.gpu.type and not job.gpu.memory_bytes:
            job.gpu.memory_bytes = capacity
        advice = ask(client.suggest, job, source)
        catalog = client.list_models().models if job.model.preset else []
    return Judged(label=source.label, sizes=dimensions_of(job, advice.prediction.model, catalog), advice=advice)
