"""`peakgate read`: the job document that a launch means."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import typer

from peakgate.client.options import ManyJobs, Output, OutputForm

if TYPE_CHECKING:
    from peakgate.client.source import Source
    from peakgate.v1.plain import Plain


def read(*, jobs: ManyJobs, output: OutputForm = Output.table) -> None:
    """Shows the job document that each launch file or command means, every field with its place. The text is such a document itself.

    Nothing is run, and nobody is asked. Exit status: 0 it was read, 2 it cannot be.
    """
    from peakgate.client.asked import jobs_and_command
    from peakgate.client.output import write_json
    from peakgate.client.sources import read_sources

    paths, command = jobs_and_command(jobs, sys.argv)
    many, array, status = len(paths) + bool(command) > 1 or "-" in paths, list["Plain"](), 0
    for source in read_sources(paths, sys.stdin.buffer, command):
        value, worst = _shown(source, output)
        status = max(status, worst)
        if output is Output.jsonl:
            write_json(value, output)
        array.append(value)
    if output is Output.json:
        write_json(array if many or len(array) != 1 else array[0], output)
    raise typer.Exit(status)


def _shown(source: Source, output: Output) -> tuple[dict[str, Plain], int]:
    """The JSON of one job, which is shown to a person; and the exit status."""
    from peakgate.client.errors import BAD_INPUT_STATUS, PeakgateError
    from peakgate.client.origin import Origin
    from peakgate.client.output import error_console, human_console
    from peakgate.client.render.answer import print_error
    from peakgate.client.render.document import leaves, print_document
    from peakgate.client.render.origin import print_unread
    from peakgate.v1.plain import job_to_dict

    if isinstance(source.job, PeakgateError):
        print_error(error_console(), source.label, source.job)
        print_unread(error_console(), source.origin)
        return source.job.as_dict(), BAD_INPUT_STATUS
    document = job_to_dict(source.job)
    if output is Output.table:  # that each field of a document stands in the document needs no words
        print_document(human_console(output), source.label, document, source.origin or Origin(format="job document"))
    origin = source.origin or Origin(format="job document", places=dict.fromkeys(leaves(document), source.label))
    return {"job": document, **origin.as_dict()}, 0
