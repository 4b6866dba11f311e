"""Lines of a history -> attempts, or what is wrong with each line."""

from __future__ import annotations

import difflib
import math
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from google.protobuf.timestamp_pb2 import Timestamp

from peakgate.client.documents import MAX_DOCUMENT_BYTES
from peakgate.client.errors import InputError
from peakgate.v1.calibration_simulation_pb2 import PastAttempt
from peakgate.v1.document import DocumentError, parse_job
from peakgate.v1.json_text import JsonError, read_json
from peakgate.v1.times import LATEST_SECONDS, timestamp
from peakgate.v1.training_job_pb2 import TrainingJob

FIGURES = ("observed_bytes", "lower_bytes", "upper_bytes", "longest_sequence")
WORDS = ("user", "outcome", "attempt")
MOMENTS = {"submitted_at": "submit_time", "finished_at": "finish_time"}
MOST_LINES = 100_000
"""Of a history: the service takes no more attempts at once (calls.py there)."""
KEYS = ("job", "gpu", "has_statistics", *FIGURES, *WORDS, *MOMENTS)
GPU_KEYS = ("type", "total_bytes")


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line that is no attempt."""

    line: int
    reason: str
    message: str


class _BadLineError(Exception):
    def __init__(self, message: str, reason: str = "LINE_INVALID") -> None:
        super().__init__(message)
        self.reason = reason


def read_history(path: str) -> Iterator[PastAttempt | BadLine]:
    """The attempts of a file, or of standard input for `-`; empty lines are passed over.

    Raises InputError when it cannot be read, or is too long: before any line is made an attempt, which takes most of the time.
    """
    try:
        if path == "-":
            lines = list(_counted(sys.stdin.buffer))
        else:
            with Path(path).open("rb") as file:
                lines = list(_counted(file))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}", reason="FILE_UNREADABLE") from error
    yield from read_lines(lines)


def read_lines(lines: Iterable[bytes]) -> Iterator[PastAttempt | BadLine]:
    """One attempt, or what is wrong, for each line that is not empty."""
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                attempt = _attempt(line)
            except _BadLineError as error:
                yield BadLine(number, error.reason, str(error))
            else:
                attempt.line = number
                yield attempt


def _counted(lines: Iterable[bytes]) -> Iterator[bytes]:
    """The lines. Raises InputError at the first one that is too many."""
    count = 0
    for line in lines:
        count += not line.isspace()
        if count > MOST_LINES:
            raise InputError(f"the history has more than {MOST_LINES} lines; take those of a shorter time", reason="HISTORY_TOO_LARGE")
        yield line


def _attempt(line: bytes) -> PastAttempt:
    values = _values(line)
    attempt = PastAttempt(job=_job(values.get("job")))
    for key in FIGURES:
        setattr(attempt, key, _figure(values, key))
    for key in WORDS:
        setattr(attempt, key, _word(values, key))
    for key, name in MOMENTS.items():
        if values.get(key) is not None:
            getattr(attempt, name).CopyFrom(_moment(values[key], key))
    attempt.has_statistics = values.get("has_statistics") is True
    _take_gpu(attempt, values.get("gpu"))
    return attempt


def _values(line: bytes) -> Mapping[str, object]:
    if len(line) > 2 * MAX_DOCUMENT_BYTES:
        raise _BadLineError("is larger than any job document", reason="DOCUMENT_TOO_LARGE")
    try:
        values = read_json(line.decode("utf-8").rstrip())
    except UnicodeDecodeError as error:
        raise _BadLineError("is no text in UTF-8") from error
    except JsonError as error:
        raise _BadLineError(error.message.replace("at line 1, column", "at column")) from error  # which line it is, is said beside it
    if not isinstance(values, dict):
        raise _BadLineError("is no JSON object")
    _check_keys(values, KEYS)
    return values


def _check_keys(values: Mapping[str, object], known: tuple[str, ...]) -> None:
    for key in values:
        if key not in known:
            near = difflib.get_close_matches(key, known, n=1)
            raise _BadLineError(f"{key[:64]!r} is no key; " + (f"is {near[0]} meant?" if near else f"known are {', '.join(known)}"))


def _job(document: object) -> TrainingJob:
    if not isinstance(document, dict):
        raise _BadLineError("job is missing: state the job document", reason="FIELD_INVALID")
    try:
        return parse_job(document)
    except DocumentError as error:
        path, description = error.fields[0]
        raise _BadLineError(f"job.{path} {description}", reason="FIELD_INVALID") from error


def _figure(values: Mapping[str, object], key: str) -> int:
    value = values.get(key)
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or not 0 <= value < 2**63:
        raise _BadLineError(f"{key} is {str(value)[:64]}; state a number that is not negative", reason="VALUE_INVALID")
    return int(value)


def _word(values: Mapping[str, object], key: str) -> str:
    value = values.get(key)
    if value is not None and not isinstance(value, str):
        raise _BadLineError(f"{key} is {str(value)[:64]}; state a text", reason="VALUE_INVALID")
    return value or ""


def _moment(value: object, key: str) -> Timestamp:
    """RFC 3339 with a time zone, or seconds since the epoch."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        if not (math.isfinite(value) and 0 <= value <= LATEST_SECONDS):
            raise _BadLineError(f"{key} is {value}, which is no time in seconds since the epoch", reason="VALUE_INVALID")
        return timestamp(value)
    try:
        found = datetime.fromisoformat(str(value))
    except ValueError as error:
        text = f"{key} is {str(value)[:64]!r}; state 2026-05-01T12:00:00Z or seconds since the epoch"
        raise _BadLineError(text, reason="VALUE_INVALID") from error
    if found.tzinfo is None or not 0 <= found.timestamp() <= LATEST_SECONDS:
        raise _BadLineError(f"{key} has no time zone, or lies before 1970: state 2026-05-01T12:00:00Z", reason="VALUE_INVALID")
    return timestamp(found.timestamp())


def _take_gpu(attempt: PastAttempt, gpu: object) -> None:
    """The card that it ran on; it is also the one that the job asks for where the job says nothing."""
    if gpu is None:
        return
    if not isinstance(gpu, dict):
        raise _BadLineError("gpu is no JSON object with type and total_bytes", reason="VALUE_INVALID")
    _check_keys(gpu, GPU_KEYS)
    attempt.gpu_total_bytes = _figure(gpu, "total_bytes")
    if not attempt.job.gpu.type and not attempt.job.gpu.memory_bytes:
        attempt.job.gpu.type = _word(gpu, "type")
        if attempt.gpu_total_bytes and not attempt.job.gpu.type:
            attempt.job.gpu.memory_bytes = attempt.gpu_total_bytes
