"""The job of a request: what was attached is believed only as far as it is made sure of."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import pytest
from tests.unit.hooks.slurm.building import TRAINING, Answering, a_job, a_submission, an_answer, serving

from peakgate.hooks.asking import Judges, Service
from peakgate.hooks.slurm import finding
from peakgate.hooks.slurm.attached import Attached, attach, read_attached
from peakgate.hooks.slurm.finding import NEW_GPUS, Finder, Found
from peakgate.hooks.slurm.reading import Read, read_submission
from peakgate.hooks.slurm.submission import Submission
from peakgate.hooks.slurm.wire import Request
from peakgate.v1.prediction_service_pb2 import GetPredictionResponse

NAME = "predictions/0123abcd"
STORED = {NAME: GetPredictionResponse(job=a_job(), prediction=an_answer())}


@asynccontextmanager
async def finder(told: list[str], stored: Mapping[str, GetPredictionResponse] = STORED) -> AsyncIterator[Finder]:
    """A finder whose service keeps these predictions."""
    async with serving(Answering(stored=stored)) as target:
        service = Service(target)
        found = Finder(judges=Judges(service=service, deadline_seconds=5.0), tell=lambda level, text: told.append(text))
        try:
            yield found
        finally:
            found.close()
            await service.channel.close()


async def found_of(request: Request, told: list[str], stored: Mapping[str, GetPredictionResponse] = STORED, comment: str = "") -> Found:
    """What is found of a request."""
    submission = a_submission(**{**request.flat(), "comment": comment})
    async with finder(told, stored) as each:
        return await each.find(request, submission, read_attached(request.environment, comment))


def attached_to(script: str = TRAINING, prediction: str = NAME) -> Attached:
    """What the submit host attaches to a batch job."""
    return attach(a_job(), prediction=prediction, script=script.encode())


def batch(attached: Attached, script: str = TRAINING, **environment: str) -> Request:
    """A batch job with it."""
    return Request(operation="submit", uid=1, script=script, environment={**attached.environment(), **environment})


async def test_the_prediction_of_the_submit_host_is_used() -> None:
    """It is of the attached document, which belongs to this script."""
    found = await found_of(batch(attached_to()), told := list[str]())
    assert (found.job, found.stored is not None, told) == (a_job(), True, [])


async def test_a_document_stands_by_itself() -> None:
    """Where its prediction is not known, or was never made."""
    unknown = await found_of(batch(attached_to()), told := list[str](), stored={})
    without = await found_of(batch(attached_to(prediction="")), told)
    assert [(each.job, each.stored) for each in (unknown, without)] == [(a_job(), None)] * 2


async def test_a_prediction_of_another_job_is_not_believed() -> None:
    """An id may be copied from anywhere; it is said in the log."""
    other = {NAME: GetPredictionResponse(job=a_job(gpu__count=1), prediction=an_answer())}
    found = await found_of(batch(attached_to()), told := list[str](), stored=other)
    assert (found.job, found.stored) == (a_job(), None)
    assert "prediction of another job" in told[0]


@pytest.mark.parametrize(
    ("script", "environment"),
    [
        (f"{TRAINING}# changed\n", {}),
        (TRAINING, {"PEAKGATE_JOB": attach(a_job(gpu__count=1)).encoded}),
        (TRAINING, {"PEAKGATE_JOB": "rubbish"}),
        (TRAINING, {"PEAKGATE_JOB": "A" * 40_000}),
    ],
    ids=["another script", "another document", "no document", "too large"],
)
async def test_what_does_not_hold_together_is_left_and_the_script_is_read(script: str, environment: dict[str, str]) -> None:
    """An environment that a job hands down, or that somebody wrote by hand."""
    found = await found_of(batch(attached_to(), script, **environment), told := list[str]())
    assert found.stored is None
    assert found.job is not None
    assert found.job.batch.micro_batch_size == 1
    assert "the script is read instead" in told[0]


async def test_an_interactive_job_names_its_prediction_in_the_comment() -> None:
    """Its document is the service's."""
    request = Request(operation="submit", uid=1)
    found = await found_of(request, [], comment=attach(a_job(), prediction=NAME).comment())
    assert (found.job, found.stored is not None) == (a_job(), True)
    forged = attach(a_job(gpu__count=1), prediction=NAME).comment()
    assert (await found_of(request, [], comment=forged)).job is None


async def test_a_change_is_about_the_prediction_of_its_stamp() -> None:
    """Which may stand beside others' words."""
    record = {"admin_comment": "JS1:abc peakgate=0123abcd", "tres_per_node": "gres:gpu:1"}
    found = await found_of(Request(operation="modify", uid=1, fields={"features": "x"}, record=record), [])
    assert found.job == a_job()


@pytest.mark.parametrize(("comment", "want_problem"), [("", False), ("peakgate=unchecked", False), ("peakgate=ffff", True)])
async def test_a_change_of_a_job_that_is_not_known_is_let_be(comment: str, want_problem: bool) -> None:
    """One whose prediction should be known says so in the journal."""
    record = {"admin_comment": comment, "tres_per_node": "gres:gpu:1"}
    found = await found_of(Request(operation="modify", uid=1, fields={"features": "x"}, record=record), [])
    assert (found.job, bool(found.read.problem)) == (None, want_problem)


async def test_gpus_that_are_added_later_are_not_checked_without_a_word() -> None:
    """No script comes with a change; the journal says why nobody judged."""
    found = await found_of(Request(operation="modify", uid=1, fields={"tres_per_node": "gres:gpu:1"}, record={"partition": "gpu"}), [])
    assert (found.job, found.read.problem) == (None, NEW_GPUS)


async def test_equal_scripts_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under the same request; another request is read anew, for it decides what the script's variables are."""
    read = list[Submission]()

    def noting(submission: Submission, script: str, argv: tuple[str, ...], stated: str) -> Read:
        read.append(submission)
        return read_submission(submission, script, argv, stated)

    monkeypatch.setattr(finding, "read_submission", noting)
    request = Request(operation="submit", uid=1, script=TRAINING)
    async with finder([]) as each:
        for tres in ("gres:gpu:2", "gres:gpu:2", "gres:gpu:4"):
            await each.find(request, a_submission(tres_per_node=tres), Attached())
    assert len(read) == 2
