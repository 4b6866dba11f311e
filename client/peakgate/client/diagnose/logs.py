"""The end of a log, however long it is: a failure stands near it, and a training log may have gigabytes."""

from __future__ import annotations

import io
import os
import re
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from peakgate.client.errors import InputError

WINDOW_BYTES = 8 * 2**20
"""What is looked at first; ranks of one job write their tracebacks one behind the other."""

MOST_BYTES = 128 * 2**20
"""What is looked at in all when the end says nothing: workers may go on writing for long behind a failure."""

OVERLAP_BYTES = 256 * 2**10
"""What two windows share, so that a traceback at their border is whole in one of them."""

_CONTROLS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[()][A-Z0-9]|[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f]+")


def windows(path: str, stdin: BinaryIO) -> Iterator[str]:
    """The end of a log and what stands before it, nearest to the end first; `-` is standard input. Raises InputError."""
    try:
        if path == "-":
            yield _text(_last(stdin))
            return
        with Path(path).open("rb") as log:
            yield from map(_text, _from_end(log))
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}", reason="LOG_UNREADABLE") from error


def _from_end(log: BinaryIO) -> Iterator[bytes]:
    if not log.seekable():  # a pipe with a name
        yield _last(log)
        return
    end = log.seek(0, os.SEEK_END)
    first = max(0, end - MOST_BYTES)
    while end > first:
        start = max(first, end - WINDOW_BYTES)
        log.seek(start)
        yield log.read(end - start)
        end = start + OVERLAP_BYTES if start > first else first


def _last(stream: BinaryIO) -> bytes:
    kept: deque[bytes] = deque()
    size = 0
    while piece := stream.read(io.DEFAULT_BUFFER_SIZE * 16):
        kept.append(piece)
        size += len(piece)
        while size - len(kept[0]) >= WINDOW_BYTES:
            size -= len(kept.popleft())
    return b"".join(kept)


def _text(data: bytes) -> str:
    """Lines without colours; a progress bar's returns are line ends."""
    text = data.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")
    return _CONTROLS.sub("", text)
