"""Where an answer goes: the readable block for people, JSON for programs, and never both on one stream."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from itertools import pairwise

from rich.console import Console

from peakgate.client.errors import PeakgateError
from peakgate.client.options import Output
from peakgate.client.streams import is_unicode
from peakgate.v1.document import Plain

BROKEN_PIPE_STATUS = 141
"""What a shell shows for a program that SIGPIPE ended; never the 1 of a rejection."""


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Ends the process when nobody reads any more, as `head` does after its last line."""
        _silence_stdout()
        raise SystemExit(BROKEN_PIPE_STATUS)


def human_console(output: Output) -> Console:
    """The console for people: standard output, or standard error when that belongs to a program."""
    return _console(stderr=output is not Output.table)


def error_console() -> Console:
    """The console for what went wrong."""
    return _console(stderr=True)


def _console(*, stderr: bool) -> Console:
    console = _Console(stderr=stderr, highlight=False)
    if not console.is_terminal:
        console.width = max(console.width, 160)  # a log or a pipe has no edge to wrap at
    return console


def write_line(text: str) -> None:
    """A line on standard output that a reader of a pipe sees at once."""
    try:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        _silence_stdout()
        sys.exit(BROKEN_PIPE_STATUS)


def _silence_stdout() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def write_json(value: Plain, output: Output) -> None:
    """One value on standard output, on one line or indented."""
    write_line(json.dumps(value, ensure_ascii=not is_unicode(sys.stdout), indent=None if output is Output.jsonl else 2))


def write_all(values: Sequence[Plain], output: Output) -> None:
    """Several values on standard output: each on a line of its own, or all as one array."""
    if output is Output.jsonl:
        for value in values:
            write_json(value, output)
    else:
        write_json([*values], output)


def report(error: PeakgateError, arguments: Sequence[str]) -> int:
    """Shows an error that ended a command: the error object for a program, the readable block for a person. Returns the exit status."""
    from peakgate.client.render.answer import print_error

    output = _output_among(arguments)
    if output is not Output.table:
        write_json(error.as_dict(), output)
    print_error(error_console(), "peakgate", error)
    return error.exit_status


def _output_among(arguments: Sequence[str]) -> Output:
    own = arguments[: list(arguments).index("--")] if "--" in arguments else arguments  # behind it are the words of a launch command
    words = " ".join(own).replace("=", " ").split()
    asked = [after for before, after in pairwise(words) if before in ("-o", "--output")]
    return Output(asked[-1]) if asked and asked[-1] in set(Output) else Output.table
