"""What to change of a job."""

from __future__ import annotations

import pytest
from tests.unit.memory.builders import a_job, a_transformer, textbook_13b

from peakgate.memory.change import Value, with_changes
from peakgate.memory.job import Job, Model
from peakgate.memory.predict import predict
from peakgate.memory.prediction import Change
from peakgate.memory.suggest.plans import ROOM, plans_of
from peakgate.memory.suggest.wanted import Plans, Wanted

GB = 1_000_000_000

LARGER = a_transformer(layers=16, hidden_size=2048, ffn_hidden_size=8192, vocab_size=8000)
"""A model beside whose states what libraries take is small."""


def on_a_card(job: Job, size: int, **wanted: object) -> Plans:
    """The plans for a card that holds so many bytes."""
    return plans_of(job, lambda _: size, Wanted(**wanted))  # type: ignore[arg-type]  # fields of Wanted


def on_a_smaller_card(job: Job, share: float = 0.9, **wanted: object) -> Plans:
    """The plans for a card that lacks 1 - `share` of what the job allocates."""
    needed = predict(job)
    return on_a_card(job, needed.required_bytes - int((1 - share) * needed.allocated_bytes), **wanted)


def titles(plans: Plans) -> list[str]:
    """What is suggested, in order."""
    return [each.title for each in plans.suggestions]


def paths(change: Change) -> set[str]:
    """The fields that a plan sets."""
    return {path for path, _ in change.changes}


def test_the_textbook_job_is_told_flash_first() -> None:
    """Lesson 6's worked example on 80 GB: FlashAttention costs nothing, then a smaller micro-batch, then recomputation."""
    found = titles(on_a_card(textbook_13b(), 80 * GB))
    assert found[0] == "FlashAttention"
    assert found.index("micro-batch 4 with 2 accumulation steps") < found.index("full activation checkpointing")


def test_combinations_are_found_where_nothing_alone_is_enough() -> None:
    """On 23 GB, where the states take 21 of them: full checkpointing with FlashAttention and a micro-batch of 1, and no spare part."""
    plans = on_a_card(textbook_13b(), 23 * GB)
    assert plans.suggestions
    for each in plans.suggestions:
        assert len(each.changes) > 1
        for part in {path.split(".")[0] for path in paths(each)} - {"batch"}:
            rest = [change for change in each.changes if not change[0].startswith(part)]
            assert predict(with_changes(textbook_13b(), rest)).required_bytes > 23 * GB


def test_where_nothing_fits_the_nearest_is_said() -> None:
    """No lever moves 21 GB of states under 1 GB of card."""
    plans = on_a_card(textbook_13b({"offload.optimizer": "none"}), GB, keeps=lambda path: path.startswith(("offload", "parallelism")))
    assert plans.suggestions == ()
    assert plans.closest is not None
    assert GB < plans.closest.required_bytes < predict(textbook_13b()).required_bytes


def test_a_job_that_fits_is_told_what_is_faster_and_what_needs_less() -> None:
    """Without checkpointing it is faster and still fits; everything else frees a tenth at least."""
    job = textbook_13b({"checkpointing.mode": "full", "attention.implementation": "flash"})
    plans = on_a_card(job, 80 * GB)
    first, *rest = plans.suggestions
    assert (first.title, first.relative_step_time < 1) == ("no activation checkpointing", True)
    assert rest
    for each in rest:
        assert each.relative_step_time < 1 or each.required_bytes <= ROOM * predict(job).required_bytes


@pytest.mark.parametrize(("allow", "want"), [((), False), (("numerics",), True)])
def test_what_changes_numbers_has_to_be_allowed(allow: tuple[str, ...], *, want: bool) -> None:
    """8-bit states and bfloat16 parameters."""
    job = a_job({"framework.name": "huggingface", "precision.recipe": "amp-bf16", "batch.micro_batch_size": 1}, model=LARGER)
    found = on_a_smaller_card(job, allow=frozenset(allow), thorough=True)
    assert any(each.alters == "numerics" for each in found.suggestions) is want


def test_adapters_change_the_objective() -> None:
    """And are offered when that is allowed."""
    job = a_job({"batch.micro_batch_size": 1}, model=LARGER)
    assert not [each for each in on_a_smaller_card(job, thorough=True).suggestions if "lora.rank" in paths(each)]
    allowed = on_a_smaller_card(job, 0.5, allow=frozenset({"objective"}), thorough=True)
    assert [each.alters for each in allowed.suggestions if "lora.rank" in paths(each)]


def test_a_free_batch_may_shrink() -> None:
    """Fewer sequences a step in place of more steps, behind the plans that keep the batch; the plan says that it alters it."""
    job = a_job({"batch.micro_batch_size": 8})
    plans = on_a_smaller_card(job, allow=frozenset({"batch"})).suggestions
    altered = [each.alters == "batch" for each in plans]
    assert altered == sorted(altered)
    assert any(altered)
    for each in plans:
        smaller = "batch.micro_batch_size" in paths(each)
        assert each.alters == ("batch" if smaller and "batch.gradient_accumulation_steps" not in paths(each) else "")


@pytest.mark.parametrize("kept", ["batch", "attention", "checkpointing"])
def test_what_must_stay_stays(kept: str) -> None:
    """A field or a part of the job."""
    plans = on_a_smaller_card(textbook_13b(), keeps=lambda path: path.split(".")[0] == kept)
    assert plans.suggestions
    assert not [path for each in plans.suggestions for path in paths(each) if path.startswith(kept)]


def test_more_gpus_where_its_own_give_too_few_plans() -> None:
    """A job of one sequence that recomputes all of it already; the plan says that it alters the GPUs, and the batch stays."""
    changes: dict[str, Value] = {"batch.micro_batch_size": 1, "batch.gradient_accumulation_steps": 4, "checkpointing.mode": "full"}
    job = a_job({**changes, "framework.name": "torchtune"}, model=LARGER)
    plans = on_a_smaller_card(job, 0.7, thorough=True)
    more = [each for each in plans.suggestions if each.alters == "gpus"]
    assert more
    assert {"gpu.count", "parallelism.world_size"} <= paths(more[0])


def test_offload_is_conditional_where_the_host_memory_is_not_known() -> None:
    """And not offered where a node has too little."""
    job = textbook_13b({"attention.implementation": "flash", "checkpointing.mode": "full", "batch.micro_batch_size": 1})
    size = int(0.6 * predict(job).required_bytes)
    (first, *_) = on_a_card(job, size, thorough=True).suggestions
    assert "offload.optimizer" in paths(first)
    assert any("RAM" in each for each in first.conditions)
    poor = on_a_card(with_changes(job, [("node.host_memory_bytes", GB)]), size, thorough=True)
    assert not [each for each in poor.suggestions if "offload.optimizer" in paths(each)]


def test_the_front_falls_in_memory_as_it_rises_in_time() -> None:
    """No point beats another in both."""
    front = on_a_smaller_card(textbook_13b(), front=True).front
    times, sizes = [each.relative_step_time for each in front], [each.required_bytes for each in front]
    assert len(front) > 3
    assert times == sorted(times)
    assert sizes == sorted(sizes, reverse=True)


@pytest.mark.parametrize(
    "job", [a_job(model=Model(parameters=1)), a_job({"batch.micro_batch_size": 0}), a_job({"batch.sequence_length": 0})]
)
def test_a_job_that_does_not_say_enough_is_offered_nothing(job: Job) -> None:
    """A plan without a figure would be a guess."""
    assert on_a_card(job, GB) == Plans()


def test_how_many_plans_were_looked_at_is_said() -> None:
    """More when suggestions are asked for."""
    quick, thorough = (on_a_card(textbook_13b(), 20 * GB, thorough=wide).considered for wide in (False, True))
    assert 0 < quick < thorough
