"""What a gate's verdicts were worth."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console

from peakgate.hooks.slurm.report import Worth, counts, judged_since, report_as_dict
from peakgate.hooks.slurm.show_report import print_report
from peakgate.v1.prediction_pb2 import Capacity
from peakgate.v1.prediction_service_pb2 import PredictionSummary


def a_decision(**changes: object) -> dict[str, object]:
    """A line of the journal."""
    line: dict[str, object] = {
        "time": "2026-11-30T18:00:00+00:00",
        "operation": "submit",
        "cluster": "a",
        "uid": 1001,
        "job_name": "sft",
        "mode": "shadow",
        "verdict": "REJECT",
        "outcome": "would_refuse",
        "prediction": "predictions/x",
        "bound_bytes": 90,
        "usable_bytes": 80,
    }
    return line | changes


def worth(decision: dict[str, object], state: str = "", observed_bytes: int = 0) -> Worth:
    """What one decision was worth."""
    summary = PredictionSummary(state=state, observed_device_bytes=observed_bytes, capacity=Capacity(total_bytes=100))
    (judged,) = judged_since([decision], since=0.0, look=lambda _: summary)
    return judged.worth


@pytest.mark.parametrize(
    ("verdict", "state", "observed", "want"),
    [
        ("REJECT", "oom", 99, Worth.STOPPED),
        ("REJECT", "failed", 98, Worth.STOPPED),
        ("REJECT", "failed", 50, Worth.UNKNOWN),
        ("REJECT", "finished", 70, Worth.WRONGLY_REFUSED),
        ("REJECT", "cancelled", 99, Worth.UNKNOWN),
        ("REJECT", "running", 99, Worth.UNKNOWN),
        ("ADMIT", "oom", 99, Worth.MISSED),
        ("ADMIT", "finished", 70, Worth.RIGHT),
        ("VERDICT_ADMIT", "finished", 70, Worth.RIGHT),
        ("UNDECIDED", "oom", 99, Worth.NOT_CHECKED),
        ("", "", 0, Worth.NOT_CHECKED),
    ],
)
def test_a_verdict_is_held_against_what_came_of_the_job(verdict: str, state: str, observed: int, want: Worth) -> None:
    """A failure with the card nearly full is an out-of-memory; a job that was cancelled proves nothing."""
    assert worth(a_decision(verdict=verdict), state, observed) is want


def test_only_the_window_and_only_submissions_count() -> None:
    """A change of a waiting job is no further job; a line whose time cannot be read is of no window."""
    lines = [a_decision(), a_decision(operation="modify"), a_decision(time="2026-11-01T00:00:00+00:00"), a_decision(time="yesterday")]
    assert len(judged_since(lines, since=1_796_000_000.0, look=lambda _: None)) == 1


def test_a_prediction_that_nobody_knows_is_not_known_yet() -> None:
    """It may have been of a gate beside the service, or have passed its time."""
    (judged,) = judged_since([a_decision()], since=0.0, look=lambda _: None)
    assert judged.worth is Worth.UNKNOWN


def test_the_report_lists_what_an_operator_wants_to_see() -> None:
    """The counts hold everything, the list what would have been stopped, refused for nothing, or was missed."""
    states = {"predictions/a": "oom", "predictions/b": "finished", "predictions/c": "finished"}
    lines = [
        a_decision(prediction=name.removeprefix("predictions/"), verdict="ADMIT" if name.endswith("c") else "REJECT") for name in states
    ]
    judged = judged_since(lines, since=0.0, look=lambda name: PredictionSummary(state=states[name]))
    told = report_as_dict(judged)
    assert counts(judged)[Worth.STOPPED] == counts(judged)[Worth.WRONGLY_REFUSED] == counts(judged)[Worth.RIGHT] == 1
    assert told["submissions"] == 3
    assert [job["prediction"] for job in told["jobs"]] == ["predictions/a", "predictions/b"]  # type: ignore[union-attr, index, call-overload]


def test_people_read_counts_and_the_jobs_behind_them() -> None:
    """A name that somebody gave a job moves no cursor."""
    lines = [a_decision(prediction="predictions/a", job_name="a\x1b[2Jb"), a_decision(prediction="predictions/b", verdict="ADMIT")]
    judged = judged_since(lines, since=0.0, look=lambda _: PredictionSummary(state="oom", observed_device_bytes=95 * 10**9))
    console = Console(file=StringIO(), width=160)
    print_report(console, judged)
    text = console.file.getvalue()  # type: ignore[attr-defined]  # it is the StringIO
    assert "2 submissions that asked for GPUs" in text
    assert "1 would have been stopped" in text
    assert "1 ran out of memory all the same" in text
    assert "a\\x1b[2Jb" in text
    assert "95.0 GB" in text


def test_hostile_lines_are_read_as_far_as_they_go() -> None:
    """The journal is a file that somebody may have edited."""
    (judged,) = judged_since([{"time": "2026-11-30T18:00:00+00:00", "verdict": ["REJECT"], "uid": None}], since=0.0, look=lambda _: None)
    assert (judged.worth, judged.user) == (Worth.NOT_CHECKED, "")
