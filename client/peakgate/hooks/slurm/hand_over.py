"""From `peakgate sbatch` to the real program: found in PATH, with the words it was given, in this very process."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

NOT_FOUND_STATUS = 127
"""As a shell has it."""
HEAD_BYTES = 4096
HELP = """peakgate {program} WORDS: {program} as it is, which is not in PATH here, with a verdict on a training job before it.
  --peakgate-try REASON      run it though it does not fit, within the daily budget
  --peakgate-override WORD   an operator's word
  --peakgate-mode MODE       off, shadow, warn or enforce
  --peakgate-server HOST:PORT
"""
"""What there is to say where the real program cannot say its own."""


def hand_over(program: str, words: Sequence[str], environment: Mapping[str, str], stdin: bytes | None = None) -> int:
    """Becomes the real program, which reads `stdin` where one was read before it; returns an exit status only where there is none."""
    if stdin is not None:
        _give(stdin)
    for path in real_programs(program, environment.get("PATH", os.defpath)):
        try:
            os.execve(path, [program, *words], dict(environment))  # noqa: S606 - the program that the user called
        except OSError as error:
            say(f"peakgate: {path}: {error.strerror}")
            return NOT_FOUND_STATUS - 1
    if "--help" in words:
        sys.stdout.write(HELP.format(program=program))
        return 0
    say(f"peakgate: {program} is not in PATH")
    return NOT_FOUND_STATUS


def say(line: str) -> None:
    """A line on standard error; one that is closed or full is no reason to hold a job up."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()


def real_programs(program: str, path: str) -> Iterator[str]:
    """Where the program lies, without scripts of the same name that call this one."""
    for folder in path.split(os.pathsep):
        candidate = Path(folder or os.curdir) / program
        if candidate.is_file() and os.access(candidate, os.X_OK) and not _calls_us(candidate):
            yield str(candidate)


def _calls_us(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
    except OSError:
        return False
    return head.startswith(b"#!") and b"peakgate" in head


def _give(content: bytes) -> None:
    """Puts `content` where the standard input was."""
    file = os.memfd_create("script")
    view = memoryview(content)
    while view:
        view = view[os.write(file, view) :]
    os.lseek(file, 0, os.SEEK_SET)
    os.dup2(file, 0)
    os.close(file)
