"""`peakgate predict`: one answer a job."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from peakgate.client.options import Database, Gpu, Output, OutputForm, Server

if TYPE_CHECKING:
    from peakgate.client.errors import PeakgateError
    from peakgate.client.sources import Source
    from peakgate.v1.training_job_pb2 import TrainingJob

Jobs = Annotated[
    list[str],
    typer.Argument(metavar="JOB...", help="Job documents (YAML or JSON); - reads JSON Lines from standard input, without empty lines."),
]
Brief = Annotated[bool, typer.Option("--brief", help="Verdict and peaks only: no ledger, timeline or suggestions.")]


def predict(
    *, jobs: Jobs, gpu: Gpu = None, server: Server = None, db: Database = None, output: OutputForm = Output.table, brief: Brief = False
) -> None:
    """Says whether the worst GPU of each job fits, why, and what to change.

    Exit status: 0 it fits, 1 it does not, 2 bad input, 3 the job does not say enough, 4 the service is unavailable.
    """
    from peakgate.client.connect import open_client
    from peakgate.client.presenter import Presenter
    from peakgate.client.sources import read_sources

    _refuse_command(sys.argv)
    sources = read_sources(jobs, sys.stdin.buffer)
    labels: deque[str] = deque()
    first = [] if "-" in jobs else list(sources)
    presenter = Presenter(output, brief=brief, many="-" in jobs or len(first) > 1)
    with open_client(server, db) as client:
        for outcome in client.predict_each(_jobs(first or sources, gpu, labels), brief=brief):
            presenter.show(labels.popleft(), outcome)
    raise typer.Exit(presenter.finish())


def _refuse_command(arguments: Sequence[str]) -> None:
    """What stands behind `--` is a launch command, unless it is a file whose name begins like an option."""
    from peakgate.client.errors import InputError

    behind = arguments[list(arguments).index("--") + 1 :] if "--" in arguments else ()
    if behind and not Path(behind[0]).exists():
        raise InputError(
            "launch commands cannot be read yet, that comes with the readers of launch files: write the job as a document",
            reason="LAUNCH_COMMAND_UNSUPPORTED",
        )


def _jobs(sources: Iterable[Source], gpu: str | None, labels: deque[str]) -> Iterator[TrainingJob | PeakgateError]:
    """The jobs on the card that was asked for; each one's label is noted before it is sent."""
    from peakgate.client.sources import on_gpu

    for source in sources:
        labels.append(source.label)
        yield on_gpu(source.job, gpu)
