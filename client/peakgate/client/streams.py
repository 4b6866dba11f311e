"""Standard output and error as they are found: closed, full, or of an encoding that has no bars."""

from __future__ import annotations

import codecs
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

OUTPUT_STATUS = 4
"""An answer that nobody could read is no verdict."""

_DAEMONS = ("serve", "agent")
"""Verbs that run without anybody who reads them."""

_PLAIN = {**dict.fromkeys("█▉▊▋▇", "#"), **dict.fromkeys("▌▍▆▅", "+"), **dict.fromkeys("▎▏▄▃", "."), **dict.fromkeys("▂▁─–", "-")}
_PLAIN |= {"…": "...", "×": "x", "→": "->", "²": "2", "³": "3"}


class OutputError(OSError):
    """Standard output or error cannot be written."""


class _Guarded(io.TextIOWrapper):
    """A stream that tells its own failures from those of other files. A reader that leaves is none: that is BrokenPipeError."""

    def write(self, text: str) -> int:
        """As any stream does; raises OutputError."""
        with _told_apart():
            return super().write(text)

    def flush(self) -> None:
        """As any stream does; raises OutputError."""
        with _told_apart():
            super().flush()


@contextmanager
def _told_apart() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(error.errno, error.strerror) from error


def prepare(arguments: list[str]) -> int:
    """Makes the streams usable; returns 0, or the exit status when there is no standard output to answer on."""
    codecs.register_error("peakgate.plain", _plain)
    sys.stderr = _opened(2) if sys.stderr is None else _guarded(sys.stderr)
    if sys.stdout is not None:
        sys.stdout = _guarded(sys.stdout)
        return 0
    sys.stdout = _opened(1)
    return 0 if arguments and arguments[0] in _DAEMONS else output_failed("standard output is closed")


def output_failed(cause: object) -> int:
    """Says so where that is still possible, and lets what is left to be written go nowhere; returns the exit status."""
    with suppress(OSError):
        sys.stderr.write(f"peakgate: the answer cannot be written: {cause}\n")
        sys.stderr.flush()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    return OUTPUT_STATUS


def _guarded(stream: TextIO) -> TextIO:
    if type(stream) is not io.TextIOWrapper:  # a test has put another kind in its place
        return stream
    encoding, buffered_by_line = stream.encoding, stream.line_buffering
    return _Guarded(stream.detach(), encoding=encoding, errors="peakgate.plain", line_buffering=buffered_by_line)


def is_unicode(stream: TextIO) -> bool:
    """Whether every character can be written as it is."""
    return codecs.lookup(stream.encoding or "ascii").name.startswith("utf")


def _opened(number: int) -> TextIO:
    """/dev/null in the place of a closed stream, so that no other file gets its number."""
    handle = os.open(os.devnull, os.O_WRONLY)
    if handle != number:
        os.dup2(handle, number)
    return open(number, "w", encoding="utf-8", closefd=False)


def _plain(error: UnicodeError) -> tuple[str, int]:
    """What stands for characters that the encoding lacks."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end]
    return "".join(_PLAIN.get(letter, "?") for letter in text), error.end
