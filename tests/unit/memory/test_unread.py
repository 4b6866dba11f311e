"""What a launch file says and no field can: the answer names it and is undecided, on every way to an answer."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.memory.builders import a_job
from tests.unit.memory.test_traced_profile import a_traced_job

from peakgate.memory.job import Job, Model
from peakgate.memory.predict import predict
from peakgate.memory.structures import forget_structures

WHAT = "use_galore (train.yaml:3 use_galore)"


@pytest.mark.parametrize(
    "job",
    [a_job(), a_job({"batch.micro_batch_size": 0}), a_job(model=Model(parameters=10**9)), a_traced_job()],
    ids=["walked", "states alone", "a count", "traced"],
)
def test_it_leaves_every_answer_undecided(job: Job) -> None:
    """Beside what else is not counted, in the reader's own words."""
    assert f"unread: {WHAT}" in predict(replace(job, unread=(WHAT,))).undecided
    assert not any("unread" in reason for reason in predict(job).undecided)


def test_a_compiled_step_of_the_same_job_is_another_one() -> None:
    """Jobs like it that were seen before must not lend it their answer, nor it them."""
    forget_structures()
    plain, unread = a_job(), replace(a_job(), unread=(WHAT,))
    answers = [predict(each) for each in (plain, plain, plain, unread, unread, unread, plain)]
    assert [bool(answer.undecided) for answer in answers] == [False, False, False, True, True, True, False]
    assert len({answer.allocated_bytes for answer in answers}) == 1
