"""Changes that make a job fit, and inverted fields."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from peakgate.memory.job import Job
from peakgate.server.assess import Assessor
from peakgate.server.errors import PeakgateError
from peakgate.server.suggest import advise, integer_paths, largest_micro_batch_size, smallest_gpu, solve

GB = 1_000_000_000
AJob = Callable[..., Job]


def titles(job: Job, assessor: Assessor) -> list[tuple[str, bool]]:
    """What is advised, in order."""
    return [(each.title, each.fits) for each in advise(job, assessor.assess(job), assessor)]


def test_illegal_changes_are_left_out_and_the_order_is_kept(a_job: AJob, assessor: Assessor) -> None:
    """Both legal fixes are enough: the cheaper one stays first."""
    assert titles(a_job(sequences=5, memory_bytes=25 * GB), assessor) == [("flash", True), ("full checkpointing", True)]


def test_changes_that_fit_come_first(a_job: AJob, assessor: Assessor) -> None:
    """Flash is cheaper and not enough."""
    assert titles(a_job(sequences=5, memory_bytes=16 * GB), assessor) == [("full checkpointing", True), ("flash", False)]


def test_changes_are_added_up_when_none_is_enough(a_job: AJob, assessor: Assessor) -> None:
    """100 GB of activations on a card with 3 GB left for them."""
    found = titles(a_job(sequences=10, memory_bytes=13 * GB), assessor)
    assert found == [("flash + full checkpointing", True), ("flash", False), ("full checkpointing", False)]


def test_nothing_is_added_up_when_all_of_it_is_not_enough(a_job: AJob, assessor: Assessor) -> None:
    """The states pass the card."""
    assert [fits for _, fits in titles(a_job(memory_bytes=9 * GB), assessor)] == [False, False]


def test_expandable_segments_come_first_where_the_allocator_would_retry(a_job: AJob, assessor: Assessor) -> None:
    """The job fits; what slows it down can be avoided."""
    assert titles(a_job(memory_bytes=22 * GB), assessor)[0][0].startswith("expandable segments")


def test_the_largest_micro_batch_is_exact(a_job: AJob, assessor: Assessor) -> None:
    """10 GB of states and 10 GB a sequence: seven fit 80 GB, six fit one byte less; none is 0."""
    assert largest_micro_batch_size(a_job(), assessor) == 7
    assert largest_micro_batch_size(a_job(memory_bytes=80 * GB - 1), assessor) == 6
    assert largest_micro_batch_size(a_job(memory_bytes=19 * GB), assessor) == 0


def test_the_smallest_gpu_is_a_whole_one(a_job: AJob, assessor: Assessor) -> None:
    """30 GB fit the half of a large card as well, which is a slice and not a card that one asks for."""
    assert smallest_gpu(a_job(sequences=2), assessor) == "middle"
    assert smallest_gpu(a_job(sequences=9), assessor) == ""


def test_solve_finds_the_largest_value_where_more_needs_more(a_job: AJob, assessor: Assessor) -> None:
    """The micro-batch again, by its path."""
    assert solve(a_job(), "batch.micro_batch_size", assessor) == 7


def test_solve_finds_the_smallest_value_where_more_needs_less(a_job: AJob, assessor: Assessor) -> None:
    """The card that the job needs, to the byte."""
    assert solve(a_job(), "gpu.memory_bytes", assessor) == 20 * GB


def test_solve_says_none_when_no_value_fits(a_job: AJob, assessor: Assessor) -> None:
    """No degree of parallelism helps in this model of memory."""
    assert solve(a_job(memory_bytes=9 * GB), "parallelism.tensor", assessor) == 0
    assert solve(a_job(memory_bytes=9 * GB), "batch.sequence_length", assessor) == 0


@pytest.mark.parametrize("path", ["attention.implementation", "dropout.hidden", "batch", "no.such.field", ""])
def test_solve_refuses_what_is_no_integer_field(path: str, a_job: AJob, assessor: Assessor) -> None:
    """The error names the argument and a path that would do."""
    with pytest.raises(PeakgateError) as caught:
        solve(a_job(), path, assessor)
    assert caught.value.reason == "FIELD_INVALID"
    assert caught.value.fields[0].field == "solve"


def test_solve_says_when_a_field_does_not_decide(a_job: AJob, assessor: Assessor) -> None:
    """Every sequence length fits in this model of memory."""
    with pytest.raises(PeakgateError) as caught:
        solve(a_job(), "batch.sequence_length", assessor)
    assert caught.value.reason == "SOLVE_UNBOUNDED"


def test_integer_paths_reach_nested_fields_and_leave_out_others() -> None:
    """Found from the dataclasses, so a new field needs no list."""
    paths = integer_paths()
    assert {"batch.micro_batch_size", "lora.rank", "model.transformer.mla.q_lora_rank"} <= paths
    assert not {"dropout.hidden", "batch.packed", "name"} & paths
