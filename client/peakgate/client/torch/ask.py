"""Asks for a prediction from inside a training, in a process of its own: gRPC never runs in the training's process.

The child is `peakgate predict -`; it asks the service of PEAKGATE_SERVER, or answers itself where none is named. It is given the time limit
and then ended, so a training waits no longer than that, once.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from subprocess import PIPE

TIME_LIMIT_SECONDS = 20.0
"""A second on a laptop without a service (`make bench`, cold start); most of the rest is for a slow file system."""

END_SECONDS = 1.0
"""How long a child that was killed is waited for."""
PROGRAM = "from peakgate.client.main import main; main()"
ARGUMENTS = ("predict", "-", "--output", "jsonl", "--brief")
REJECT = "REJECT"


class NoAnswerError(Exception):
    """There is no prediction; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the service says of a job. `prediction` is empty where nothing keeps it (no service)."""

    verdict: str
    reason: str
    prediction: str = ""

    def text(self) -> str:
        """For the other ranks."""
        return json.dumps(asdict(self))


def answer_of(text: str) -> Answer:
    """The opposite of `Answer.text`."""
    return Answer(**json.loads(text))


def ask(job: Mapping[str, object], *, time_limit_seconds: float = TIME_LIMIT_SECONDS) -> Answer:
    """The answer to a job document. Raises NoAnswerError."""
    command = [sys.executable, "-P", "-c", PROGRAM, *ARGUMENTS]  # -P: a file of the training's folder is no module of ours
    try:
        child = subprocess.Popen(command, text=True, stdin=PIPE, stdout=PIPE, stderr=PIPE)  # noqa: S603 (our own program)
    except OSError as error:
        raise NoAnswerError(f"{sys.executable} could not be started: {error}") from error
    try:
        return _read(*child.communicate(json.dumps(job), timeout=time_limit_seconds))
    except subprocess.TimeoutExpired:
        raise NoAnswerError(f"no answer within {time_limit_seconds:g} s") from None
    finally:
        _end(child)


def _end(child: subprocess.Popen[str]) -> None:
    """A child that hangs in a file system does not even go when it is killed: it is not waited for longer than a moment."""
    child.kill()
    for pipe in (child.stdin, child.stdout, child.stderr):
        if pipe:
            with contextlib.suppress(OSError):
                pipe.close()
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(timeout=END_SECONDS)


def _read(out: str, err: str) -> Answer:
    try:
        value = json.loads(out.splitlines()[0])
        if "error" in value:
            raise NoAnswerError(str(value["error"]["message"]))
        return Answer(verdict=value["verdict"], reason=value["reason"], prediction=value["prediction"])
    except (ValueError, LookupError, TypeError):
        last = err.strip().splitlines()[-1:] or ["nothing was said"]
        raise NoAnswerError(f"`peakgate predict` failed: {last[0][:300]}") from None
