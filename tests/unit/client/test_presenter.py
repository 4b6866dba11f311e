"""A batch of answers: JSON for programs, the exit status for scripts."""

from __future__ import annotations

import json

import pytest
from tests.unit.client.service import an_answer

from peakgate.client.connect import Outcome
from peakgate.client.errors import InputError, PeakgateError
from peakgate.client.options import Output
from peakgate.client.presenter import Presenter
from peakgate.v1.prediction_pb2 import TryAnyway, Verdict

ADMIT = an_answer(verdict=Verdict.VERDICT_ADMIT)
REJECT = an_answer(verdict=Verdict.VERDICT_REJECT)
TRIED = an_answer(verdict=Verdict.VERDICT_REJECT, try_anyway=TryAnyway(granted=True, left=2, limit=3))
NOT_TRIED = an_answer(verdict=Verdict.VERDICT_REJECT, try_anyway=TryAnyway(message="it may not", limit=3))
UNDECIDED = an_answer(verdict=Verdict.VERDICT_UNDECIDED)
BAD = InputError("no job")
AWAY = PeakgateError("nobody there", code="UNAVAILABLE", reason="UNAVAILABLE")


def status_of(*outcomes: Outcome, output: Output = Output.jsonl) -> int:
    """The exit status of a batch."""
    presenter = Presenter(output, brief=False, many=True)
    for outcome in outcomes:
        presenter.show("job", outcome)
    return presenter.finish()


@pytest.mark.parametrize(
    ("outcomes", "want"),
    [
        ([ADMIT], 0),
        ([REJECT], 1),
        ([TRIED], 0),
        ([NOT_TRIED], 1),
        ([TRIED, REJECT], 1),
        ([BAD], 2),
        ([UNDECIDED], 3),
        ([AWAY], 4),
        ([ADMIT, UNDECIDED], 3),
        ([UNDECIDED, REJECT], 1),
        ([REJECT, AWAY], 4),
        ([AWAY, ADMIT, BAD, REJECT], 2),
        ([], 0),
    ],
)
def test_the_first_that_applies_is_the_status(outcomes: list[Outcome], want: int) -> None:
    """Of several jobs 2 wins over 4, 4 over 1, 1 over 3, 3 over 0."""
    assert status_of(*outcomes) == want


def test_json_lines_hold_answers_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    """One object a line in order, an error object in a bad job's place."""
    status_of(ADMIT, BAD, REJECT)
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line.get("verdict") or line["error"]["code"] for line in lines] == ["ADMIT", "INVALID_ARGUMENT", "REJECT"]


def test_json_of_several_is_one_array(capsys: pytest.CaptureFixture[str]) -> None:
    """Standard output as a whole is one JSON value."""
    status_of(ADMIT, BAD, output=Output.json)
    assert len(json.loads(capsys.readouterr().out)) == 2


def test_json_of_one_is_an_object(capsys: pytest.CaptureFixture[str]) -> None:
    """A single job's answer is not wrapped."""
    presenter = Presenter(Output.json, brief=False, many=False)
    presenter.show("job", ADMIT)
    presenter.finish()
    assert json.loads(capsys.readouterr().out)["verdict"] == "ADMIT"


def test_many_jobs_are_a_line_each_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    """Beside JSON a person gets one line a job, not a block."""
    status_of(*[REJECT] * 40)
    assert len(capsys.readouterr().err.splitlines()) == 40
