"""Changes that make a job fit: what the memory model found, each predicted again before it is shown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from peakgate.memory.job import Job
from peakgate.memory.prediction import Change
from peakgate.memory.suggest.wanted import LimitOf, Plans, Wanted
from peakgate.server.assess import Assessor
from peakgate.server.memory import Changes
from peakgate.server.subjects import framework_key, group_key, scaled
from peakgate.server.suggest import ASKED, UNASKED, Counsel, advise
from peakgate.server.wishes import Wishes

GB = 1_000_000_000
AJob = Callable[..., Job]


def counsel(job: Job, assessor: Assessor, deciding: Changes = (), **more: object) -> Counsel:
    """What is advised."""
    return advise(job, assessor.assess(job), assessor, deciding, **more)  # type: ignore[arg-type]  # keyword arguments of advise


def titles(job: Job, assessor: Assessor) -> list[tuple[str, bool]]:
    """The titles in order, and whether each fits."""
    return [(each.title, each.fits) for each in counsel(job, assessor).advice]


def finding(assessor: Assessor, *changes: Change, closest: Change | None = None) -> Assessor:
    """With a memory model that finds these plans."""
    return replace(assessor, memory=replace(assessor.memory, plans=lambda *_: Plans(suggestions=changes, closest=closest, considered=7)))


def test_illegal_plans_are_left_out_and_the_order_is_kept(a_job: AJob, assessor: Assessor) -> None:
    """Both legal ones are enough: the cheaper one stays first."""
    assert titles(a_job(sequences=5, memory_bytes=25 * GB), assessor) == [("flash", True), ("full checkpointing", True)]


def test_a_plan_that_does_not_fit_when_it_is_predicted_again_is_last(a_job: AJob, assessor: Assessor) -> None:
    """Whatever the search said of it: the whole path decides."""
    small = Change(title="small", changes=(("batch.micro_batch_size", 4),), relative_step_time=1.0, why="")
    full = Change(title="full", changes=(("checkpointing.mode", "full"),), relative_step_time=1.3, why="")
    found = titles(a_job(sequences=5, memory_bytes=16 * GB), finding(assessor, small, full))
    assert found == [("full", True), ("small", False)]


def test_what_decides_comes_before_every_change(a_job: AJob, assessor: Assessor) -> None:
    """To state the field costs nothing; it fits, and is not listed twice."""
    job = a_job(sequences=5, checkpointing=None, memory_bytes=25 * GB)
    first, second = counsel(job, assessor, (("checkpointing.mode", "full"),)).advice
    assert first.title == "state checkpointing.mode, if that is what the job does"
    assert (first.changes, second.title) == ((("checkpointing.mode", "full"),), "flash")


def test_several_fields_that_decide_are_one_suggestion(a_job: AJob, assessor: Assessor) -> None:
    """They decide together."""
    job = a_job(sequences=10, attention=None, checkpointing=None, memory_bytes=13 * GB)
    deciding: Changes = (("attention.implementation", "flash"), ("checkpointing.mode", "full"))
    first = counsel(job, assessor, deciding).advice[0]
    assert (first.changes, first.fits) == (deciding, True)
    assert first.title.startswith("state attention.implementation and checkpointing.mode")


def test_an_offload_that_a_node_cannot_hold_may_be_left_out(a_job: AJob, assessor: Assessor) -> None:
    """The states fit the GPU as well."""
    first = titles(a_job(offload="cpu", host_memory_bytes=GB), assessor)[0]
    assert first == ("optimizer states stay on the GPU", True)


def test_expandable_segments_come_first_where_the_allocator_would_retry(a_job: AJob, assessor: Assessor) -> None:
    """The job fits; what slows it down can be avoided."""
    assert titles(a_job(memory_bytes=22 * GB), assessor)[0][0].startswith("expandable segments")


def test_what_must_stay_is_not_offered(a_job: AJob, assessor: Assessor) -> None:
    """Nor is what the service itself would say."""
    job = a_job(memory_bytes=22 * GB)
    kept = counsel(job, assessor, wishes=Wishes(keep=("framework",))).advice
    assert not [each for each in kept if each.title.startswith("expandable")]


def test_without_a_card_nothing_is_searched(a_job: AJob, assessor: Assessor) -> None:
    """Unless the front is asked for, which needs none."""
    job = a_job(memory_bytes=None)
    assert counsel(job, assessor) == Counsel()
    assert counsel(job, assessor, wishes=Wishes(pareto=True)).plans > 0


def test_headroom_is_what_the_changed_job_leaves(a_job: AJob, assessor: Assessor) -> None:
    """Usable bytes less the bound, on the card that the changed job asks for."""
    job = a_job(sequences=5, memory_bytes=25 * GB)
    for each in counsel(job, assessor).advice:
        assert each.headroom_bytes == assessor.assess(job).usable_bytes - each.bound_bytes > 0


def test_where_nothing_fits_the_shortfall_is_said(a_job: AJob, assessor: Assessor) -> None:
    """In bytes and with the largest line of the ledger of the plan that comes nearest."""
    job = a_job(memory_bytes=9 * GB)
    found = counsel(job, assessor)
    assert found.advice == ()
    assert found.shortfall is not None
    changed = assessor.changed(job, found.shortfall.closest.changes)
    assert changed is not None
    assert found.shortfall.bytes == changed.bound_bytes - changed.usable_bytes > 0
    assert found.shortfall.largest == max(changed.prediction.ledger, key=lambda line: line.bytes)


def test_another_card_is_offered_last_and_beside_the_shortfall(a_job: AJob, assessor: Assessor) -> None:
    """Only when suggestions are asked for; it alters the GPUs."""
    job = a_job(memory_bytes=9 * GB)
    assert not counsel(job, assessor).advice
    found = counsel(job, assessor, thorough=True)
    assert [(each.alters, each.fits) for each in found.advice] == [("gpus", True)]
    assert found.shortfall is not None


@pytest.mark.parametrize(("thorough", "want_most"), [(False, UNASKED), (True, ASKED)])
def test_a_search_that_is_asked_for_is_wider(a_job: AJob, assessor: Assessor, *, thorough: bool, want_most: int) -> None:
    """And knows what may be altered and what must stay."""
    asked: list[Wanted] = []

    def plans(_: Job, limit_of: LimitOf, wanted: Wanted) -> Plans:
        asked.append(wanted)
        assert limit_of("huggingface/fsdp/bfloat16") > 0
        return Plans()

    watching = replace(assessor, memory=replace(assessor.memory, plans=plans))
    counsel(a_job(), watching, wishes=Wishes(allow=frozenset({"numerics"}), keep=("batch",), pareto=True), thorough=thorough)
    (wanted,) = asked
    assert (wanted.most, wanted.thorough, wanted.front, wanted.allow) == (want_most, thorough, True, frozenset({"numerics"}))
    assert wanted.keeps("batch.micro_batch_size")
    assert not wanted.keeps("attention.implementation")


@pytest.mark.parametrize("kind", ["huggingface/none/bfloat16", "huggingface/fsdp/bfloat16"])
def test_the_largest_requirement_is_the_last_whose_bound_fits(kind: str, a_job: AJob, assessor: Assessor) -> None:
    """One byte more, with activations and states in proportion, and the bound passes the card; under the coverage that the answer has."""
    job = a_job()
    like = replace(assessor.assess(job).subject, runtime_bytes=GB)
    largest = assessor.largest_requirement(kind, job=job, like=like, usable_bytes=80 * GB)
    of_kind = replace(like, framework=framework_key(kind, job), group=group_key(kind, job, None))
    bounds = [
        assessor.snapshot.bound(scaled(of_kind, required_bytes=largest + more), coverage=assessor.policy.careful_coverage)
        for more in (0, 1)
    ]
    assert bounds[0].bound_bytes <= 80 * GB < bounds[1].bound_bytes


def test_what_a_textbook_job_may_require_is_the_card(a_job: AJob, assessor: Assessor) -> None:
    """It has no margin."""
    like = assessor.assess(a_job()).subject
    assert assessor.largest_requirement("textbook/none/float32", job=a_job(), like=like, usable_bytes=80 * GB) == 80 * GB
