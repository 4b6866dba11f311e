"""Asks for a prediction from inside a training, in a process of its own: gRPC never runs in the training's process.

The child is `peakgate predict -`; it asks the service of PEAKGATE_SERVER, or answers itself where none is named. It is given the time limit
and then ended, so a training waits no longer than that, once.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass

TIME_LIMIT_SECONDS = 20.0
"""A second on a laptop without a service (`make bench`, cold start); most of the rest is for a slow file system."""

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
        done = subprocess.run(command, input=json.dumps(job), capture_output=True, text=True, timeout=time_limit_seconds, check=False)  # noqa: S603
    except subprocess.TimeoutExpired:
        raise NoAnswerError(f"no answer within {time_limit_seconds:g} s") from None
    except OSError as error:
        raise NoAnswerError(f"{sys.executable} could not be started: {error}") from error
    return _read(done.stdout, done.stderr)


def _read(out: str, err: str) -> Answer:
    try:
        value = json.loads(out.splitlines()[0])
        if "error" in value:
            raise NoAnswerError(str(value["error"]["message"]))
        return Answer(verdict=value["verdict"], reason=value["reason"], prediction=value["prediction"])
    except (ValueError, LookupError, TypeError):
        last = err.strip().splitlines()[-1:] or ["nothing was said"]
        raise NoAnswerError(f"`peakgate predict` failed: {last[0][:300]}") from None
