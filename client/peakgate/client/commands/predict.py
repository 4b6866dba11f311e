"""`peakgate predict`: one answer a job."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from peakgate.client.options import Database, Gpu, ManyJobs, Output, OutputForm, Server, User

if TYPE_CHECKING:
    from peakgate.client.errors import PeakgateError
    from peakgate.client.source import Source
    from peakgate.v1.prediction_pb2 import PredictResponse
    from peakgate.v1.training_job_pb2 import TrainingJob

Brief = Annotated[bool, typer.Option("--brief", help="Verdict and peaks only: no ledger, timeline or suggestions.")]
TryAnyway = Annotated[
    str | None,
    typer.Option("--try", metavar="REASON", help="Run a job that is rejected all the same, for this reason: spends one of --user's tries."),
]


def predict(
    *,
    jobs: ManyJobs,
    gpu: Gpu = None,
    server: Server = None,
    db: Database = None,
    output: OutputForm = Output.table,
    brief: Brief = False,
    user: User = "",
    try_reason: TryAnyway = None,
) -> None:
    """Says whether the worst GPU of each job fits, why, and what to change.

    Exit status: 0 it fits, or it was granted a try; 1 it does not, 2 bad input, 3 the job does not say enough, 4 the service is
    unavailable.
    """
    from peakgate.client.asked import jobs_and_command
    from peakgate.client.connect import Asker, open_client
    from peakgate.client.errors import InputError, PeakgateError
    from peakgate.client.presenter import Presenter
    from peakgate.client.sources import read_sources
    from peakgate.client.unknown_model import settled

    if try_reason is not None and not try_reason.strip():
        raise InputError("--try: states no reason: say why the job should run all the same", reason="USAGE")
    asker = Asker(user=user, try_reason=try_reason or "")
    paths, command = jobs_and_command(jobs, sys.argv)
    sources = read_sources(paths, sys.stdin.buffer, command)
    sent: deque[Source] = deque()
    first = [] if "-" in paths else list(sources)
    presenter = Presenter(output, brief=brief, many="-" in paths or len(first) > 1)
    with open_client(server, db) as client:
        for outcome in client.predict_each(_jobs(first or sources, gpu, sent), brief=brief, asker=asker):
            source = sent.popleft()
            found = settled(outcome, source, partial(client.predict, brief=brief, asker=asker))
            shown = found if isinstance(found, PeakgateError) else _with_edits(source.checked(found), source)
            presenter.show(source.label, shown, source.origin)
    raise typer.Exit(presenter.finish())


def _with_edits(answer: PredictResponse, source: Source) -> PredictResponse:
    """The answer, each suggestion with the edit of the launch that the job was read from."""
    if source.launch is not None and answer.suggestions:
        from peakgate.client.rewrite import show_edits

        show_edits(answer.suggestions, source.launch)
    return answer


def _jobs(sources: Iterable[Source], gpu: str | None, sent: deque[Source]) -> Iterator[TrainingJob | PeakgateError]:
    """The jobs on the card that was asked for; each one is noted before it is sent."""
    for source in sources:
        sent.append(source.on(gpu))
        yield sent[-1].job
