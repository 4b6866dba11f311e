"""Lines of a history."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.histories import a_document

from peakgate.client.errors import InputError
from peakgate.client.history.read import MOST_LINES, BadLine, read_history, read_lines
from peakgate.client.history.write import attempt_as_dict
from peakgate.server.simulation.calls import MOST_ATTEMPTS
from peakgate.v1.calibration_simulation_pb2 import PastAttempt

DOCUMENT = a_document("h100-80gb", "llama-3.2-1b", 2048, 2)


def a_line(**changes: object) -> dict[str, object]:
    """An attempt that finished."""
    return {"job": DOCUMENT, "finished_at": "2026-05-01T12:00:00Z", "user": "ada", "outcome": "finished", "observed_bytes": 4e10} | changes


def read_one(line: object) -> PastAttempt | BadLine:
    """What a single line is."""
    (found,) = read_lines([line if isinstance(line, bytes) else json.dumps(line).encode()])
    return found


def test_a_line_is_an_attempt() -> None:
    """The job document, the times, the figures and where it stands."""
    found = read_one(a_line(submitted_at=1_777_000_000.25, has_statistics=True, lower_bytes=10))
    assert isinstance(found, PastAttempt)
    assert (found.line, found.job.model.preset, found.user, found.outcome) == (1, "llama-3.2-1b", "ada", "finished")
    assert (found.observed_bytes, found.lower_bytes, found.has_statistics) == (40_000_000_000, 10, True)
    assert (found.finish_time.ToJsonString(), found.submit_time.nanos) == ("2026-05-01T12:00:00Z", 250_000_000)


def test_what_is_written_reads_the_same() -> None:
    """But for the line that it stands on."""
    found = read_one(
        a_line(submitted_at=1_777_000_000, upper_bytes=9, longest_sequence=5, gpu={"total_bytes": 7}, attempt="predictions/1/7/0")
    )
    assert isinstance(found, PastAttempt)
    assert read_one(attempt_as_dict(found)) == found


def test_the_card_of_a_job_that_names_none_is_the_one_that_it_ran_on() -> None:
    """By its name, or by its size."""
    job = {name: value for name, value in DOCUMENT.items() if name != "gpu"}
    named, sized, stated = (
        read_one(a_line(job=each, gpu=gpu))
        for each, gpu in (
            (job, {"type": "l4-24gb"}),
            (job, {"total_bytes": 24_000_000_000}),
            (DOCUMENT, {"type": "l4-24gb", "total_bytes": 24}),
        )
    )
    assert isinstance(named, PastAttempt)
    assert named.job.gpu.type == "l4-24gb"
    assert isinstance(sized, PastAttempt)
    assert (sized.job.gpu.memory_bytes, sized.gpu_total_bytes) == (24_000_000_000, 24_000_000_000)
    assert isinstance(stated, PastAttempt)
    assert (stated.job.gpu.type, stated.gpu_total_bytes) == ("h100-80gb", 24)


@pytest.mark.parametrize(
    ("line", "want_message"),
    [
        (b"{", "is not JSON: Expecting property name enclosed in double quotes at column 2"),
        (b"[]", "is no JSON object"),
        (b'{"job": {}, "job": {}}', "twice"),
        (b"\xff", "UTF-8"),
        (b'"' + b"x" * 2_100_000 + b'"', "larger than any job document"),
        ({}, "job is missing"),
        (a_line(job={"model": {"preset": "llama-3.2-1b"}, "btch": {}}), "job.btch"),
        (a_line(observed_byte=1), "is observed_bytes meant?"),
        (a_line(observed_bytes="4e10"), "observed_bytes is 4e10"),
        (a_line(observed_bytes=float("nan")), "observed_bytes is nan"),
        (a_line(observed_bytes=-1), "observed_bytes is -1"),
        (a_line(observed_bytes=1e19), "observed_bytes is 1e+19"),
        (a_line(observed_bytes=True), "observed_bytes is True"),
        (a_line(user=7), "user is 7"),
        (a_line(finished_at="yesterday"), "finished_at is 'yesterday'"),
        (a_line(finished_at="2026-05-01T12:00:00"), "no time zone"),
        (a_line(finished_at="1890-05-01T12:00:00Z"), "before 1970"),
        (a_line(finished_at=-1), "no time in seconds"),
        (a_line(finished_at=float("inf")), "no time in seconds"),
        (a_line(gpu="h100"), "gpu is no JSON object"),
        (a_line(gpu={"total": 1}), "is total_bytes meant?"),
    ],
)
def test_a_bad_line_says_what_is_wrong(line: object, want_message: str) -> None:
    """With its number, a word and the remedy; the others are read all the same."""
    good = json.dumps(a_line()).encode()
    content = line if isinstance(line, bytes) else json.dumps(line).encode()
    before, bad, after = read_lines([good, content, b"  \n", good])
    assert isinstance(bad, BadLine)
    assert (bad.line, bad.reason.isupper()) == (2, True)
    assert want_message in bad.message
    assert isinstance(before, PastAttempt)
    assert isinstance(after, PastAttempt)
    assert after.line == 4


@pytest.mark.parametrize("excess", [0, 1])
def test_a_history_that_is_too_long_is_refused_before_it_is_made_attempts(tmp_path: Path, excess: int) -> None:
    """Empty lines do not count; each of these would be a bad line."""
    (tmp_path / "long.jsonl").write_text("[]\n \n" * (MOST_LINES + excess))
    if excess:
        with pytest.raises(InputError, match=f"more than {MOST_LINES} lines") as raised:
            next(read_history(str(tmp_path / "long.jsonl")))
        assert raised.value.reason == "HISTORY_TOO_LARGE"
    else:
        assert next(read_history(str(tmp_path / "long.jsonl"))) == BadLine(1, "LINE_INVALID", "is no JSON object")


def test_as_many_lines_as_the_service_takes_attempts() -> None:
    """What the command lets through is not refused there after minutes."""
    assert MOST_LINES == MOST_ATTEMPTS


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    """As every file of the command is."""
    with pytest.raises(InputError, match=r"none\.jsonl: No such file"):
        list(read_history(str(tmp_path / "none.jsonl")))
