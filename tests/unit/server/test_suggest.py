"""Changes that make a job fit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from peakgate.memory.job import Job
from peakgate.memory.prediction import Change
from peakgate.server.assess import Assessor
from peakgate.server.memory import Changes
from peakgate.server.suggest import Advice, advise

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


def a_plan(job: Job, assessor: Assessor, *changes: Change) -> Advice:
    """The first advice when the memory model lists these changes."""
    listing = replace(assessor, memory=replace(assessor.memory, fixes=lambda _: changes))
    return advise(job, listing.assess(job), listing)[0]


def a_change(path: str, value: str | int, step_time: float = 1.0) -> Change:
    """A change of one field, named by it."""
    return Change(title=f"{path}={value}", changes=((path, value),), relative_step_time=step_time, why="")


HALVES = tuple(a_change("batch.micro_batch_size", size) for size in (4, 2, 1))
FLASH = a_change("attention.implementation", "flash", 1.5)
FULL = a_change("checkpointing.mode", "full", 1.33)


def test_a_sum_holds_the_last_value_of_a_field_only(a_job: AJob, assessor: Assessor) -> None:
    """Eight sequences on the way to one: the plan says one, and neither its title nor its changes speak of four or two."""
    plan = a_plan(a_job(sequences=8, memory_bytes=13 * GB), assessor, *HALVES, FLASH)
    assert plan.title == "batch.micro_batch_size=1 + attention.implementation=flash"
    assert plan.changes == (("batch.micro_batch_size", 1), ("attention.implementation", "flash"))
    assert plan.fits


def test_a_sum_leaves_out_what_is_not_needed(a_job: AJob, assessor: Assessor) -> None:
    """Flash helps and is not enough; in the end smaller pieces and recomputation fit without it, and the step time is theirs alone."""
    plan = a_plan(a_job(sequences=8, memory_bytes=12 * GB), assessor, FLASH, *HALVES[:2], FULL)
    assert plan.title == "batch.micro_batch_size=2 + checkpointing.mode=full"
    assert (plan.fits, plan.relative_step_time) == (True, 1.33)


def test_the_step_time_of_a_sum_is_unknown_when_that_of_a_part_is(a_job: AJob, assessor: Assessor) -> None:
    """A product with an unknown factor is not estimated."""
    plan = a_plan(a_job(sequences=10, memory_bytes=13 * GB), assessor, replace(FLASH, relative_step_time=0.0), FULL)
    assert (plan.fits, plan.relative_step_time) == (True, 0.0)


def test_what_decides_comes_before_every_change(a_job: AJob, assessor: Assessor) -> None:
    """To state the field costs nothing; it fits, and is not listed twice."""
    job = a_job(sequences=5, checkpointing=None, memory_bytes=25 * GB)
    advice = advise(job, assessor.assess(job), assessor, (("checkpointing.mode", "full"),))
    assert [(each.title, each.fits) for each in advice] == [("full checkpointing", True), ("flash", True)]


def test_several_fields_that_decide_are_one_suggestion(a_job: AJob, assessor: Assessor) -> None:
    """No change of the list is the same, so the suggestion is to state them."""
    job = a_job(sequences=10, attention=None, checkpointing=None, memory_bytes=13 * GB)
    deciding: Changes = (("attention.implementation", "flash"), ("checkpointing.mode", "full"))
    first = advise(job, assessor.assess(job), assessor, deciding)[0]
    assert (first.changes, first.fits) == (deciding, True)
    assert first.title.startswith("state attention.implementation and checkpointing.mode")


def test_an_offload_that_a_node_cannot_hold_may_be_left_out(a_job: AJob, assessor: Assessor) -> None:
    """The states fit the GPU as well."""
    first = titles(a_job(offload="cpu", host_memory_bytes=GB), assessor)[0]
    assert first == ("optimizer states stay on the GPU", True)


def test_nothing_is_added_up_when_all_of_it_is_not_enough(a_job: AJob, assessor: Assessor) -> None:
    """The states pass the card."""
    assert [fits for _, fits in titles(a_job(memory_bytes=9 * GB), assessor)] == [False, False]


def test_expandable_segments_come_first_where_the_allocator_would_retry(a_job: AJob, assessor: Assessor) -> None:
    """The job fits; what slows it down can be avoided."""
    assert titles(a_job(memory_bytes=22 * GB), assessor)[0][0].startswith("expandable segments")
