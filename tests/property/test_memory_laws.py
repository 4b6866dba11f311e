"""Laws of the memory model that hold for every job."""

from __future__ import annotations

import itertools
import time
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from tests.property.jobs import MODELLED, SHARDINGS, adapters, documents, jobs, transformers
from tests.unit.memory.builders import a_job, a_transformer, plan_of, sizes_of, stages_of

from peakgate.memory.change import Value, with_changes
from peakgate.memory.choices import CATEGORIES, CHOICES, PHASES
from peakgate.memory.favourable import favourable
from peakgate.memory.job import Job, Lora, Transformer
from peakgate.memory.methods.rows import METHODS
from peakgate.memory.predict import predict
from peakgate.memory.prediction import JobError, Prediction
from peakgate.memory.step import walk
from peakgate.memory.suggest.plans import plans_of
from peakgate.memory.suggest.wanted import Wanted

FREEZABLE = ("embed_tokens", "norms", "mlp", "attention", "layers.0", "backbone")
"""Parts that every family has."""

SLOWEST_SECONDS = 1.0
"""Of CPU time, for any document: a service answers other callers meanwhile."""


def assert_sound(answer: Prediction) -> None:
    """What holds for every answer: the ledger sums, peaks are in order, words are the contract's, nothing is negative."""
    assert sum(line.bytes for line in answer.ledger) == answer.device_bytes
    assert 0 <= answer.live_bytes <= answer.allocated_bytes <= answer.reserved_bytes <= answer.device_bytes
    assert answer.allocated_bytes <= answer.required_bytes
    assert answer.states_bytes <= answer.allocated_bytes
    assert answer.trainable_parameters <= answer.parameters
    assert {line.category for line in answer.ledger} <= set(CATEGORIES)
    assert {answer.peak_phase, *(phase for phase, _ in answer.phase_peaks), *(point.phase for point in answer.timeline)} <= set(PHASES)
    sizes = (answer.host_bytes, answer.saved_activation_bytes_per_layer, answer.trainable_parameters)
    parts = (line.bytes for line in answer.ledger)
    assert min((*sizes, *parts, *(size for _, size in answer.phase_peaks), *(point.allocated_bytes for point in answer.timeline))) >= 0


def answer_or_error(job: Job) -> Prediction | JobError:
    """What a caller gets."""
    try:
        return predict(job)
    except JobError as error:
        return error


@given(jobs())
def test_every_answer_is_sound(job: Job) -> None:
    """The ledger sums to the device bytes; live ≤ allocated ≤ reserved ≤ device; the timeline never passes the peak."""
    answer = predict(job)
    assert_sound(answer)
    assert max(size for _, size in answer.phase_peaks) == answer.required_bytes
    assert max(point.allocated_bytes for point in answer.timeline) <= answer.allocated_bytes


@given(documents())
def test_any_document_is_answered_or_refused(job: Job) -> None:
    """Never another error than JobError with its fields, never a negative number, never more than a second."""
    start = time.process_time()
    answer = answer_or_error(job)
    assert time.process_time() - start < SLOWEST_SECONDS
    if isinstance(answer, Prediction):
        assert_sound(answer)
    else:
        assert answer.fields
        assert all(each.field and each.description for each in answer.fields)


@settings(max_examples=settings().max_examples // 3, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(documents())  # half a second each: every plan is searched
def test_an_accepted_document_has_only_legal_plans_and_values(job: Job) -> None:
    """What is offered for a job that can be judged can be judged."""
    answer = answer_or_error(job)
    assume(isinstance(answer, Prediction))  # most are refused
    assert isinstance(answer, Prediction)
    plans = plans_of(job, lambda _: answer.required_bytes - 1, Wanted())
    for changes in (*(plan.changes for plan in plans.suggestions), *(((path, value),) for path, value in favourable(job)), favourable(job)):
        assert_sound(predict(with_changes(job, changes)))


@given(jobs(), st.sampled_from(["batch.micro_batch_size", "batch.sequence_length"]), st.integers(1, 9))
def test_more_batch_never_needs_less(job: Job, path: str, more: int) -> None:
    """A larger micro-batch and a longer sequence raise allocated and required bytes, or leave them."""
    now = job.batch.micro_batch_size if path.endswith("size") else job.batch.sequence_length
    small, large = predict(job), predict(with_changes(job, [(path, (now or 0) + more)]))
    assert small.allocated_bytes <= large.allocated_bytes
    assert small.required_bytes <= large.required_bytes


@given(jobs(parallelism__pipeline_schedule="gpipe"), st.integers(1, 3))
def test_more_micro_batches_in_flight_never_need_less(job: Job, times: int) -> None:
    """GPipe holds all of an accumulation's micro-batches."""
    steps = job.batch.gradient_accumulation_steps or 1
    assume(steps > 1)
    more = with_changes(job, [("batch.gradient_accumulation_steps", steps * times)])
    assert predict(job).allocated_bytes <= predict(more).allocated_bytes


@given(jobs(with_adapters=False, checkpointing__mode="none", checkpointing__layers=0))
def test_full_checkpointing_never_saves_more_than_none(job: Job) -> None:
    """After the forward pass a layer's input is all that is kept of it. (A frozen layer with one adapter may keep less than its input.)"""
    plan = plan_of(job)
    for stage in stages_of(plan):
        none, full = (walk(each, stage).held_per_micro_batch for each in (plan, replace(plan, checkpointing="full")))
        assert full <= none


@given(jobs(parallelism__pipeline=1, parallelism__tensor=1, parallelism__world_size=4, checkpointing__mode="none"))
def test_each_zero_stage_never_raises_the_states(job: Job) -> None:
    """None, 1, 2, 3: what is resident between steps falls or stays."""
    sizes = [predict(with_changes(job, [("parallelism.sharding", kind)])).states_bytes for kind in ("none", "zero1", "zero2", "zero3")]
    assert sizes == sorted(sizes, reverse=True)


@given(
    st.sampled_from((2, 4, 8)),
    st.integers(1, 4),
    st.sampled_from((16, 64)),
    st.sampled_from(("eager", "flash")),
    st.sampled_from((0.0, 0.1)),
)
def test_tensor_and_sequence_parallelism_divide_the_textbooks_layer(
    degree: int, micro_batch: int, sequence: int, attention: str, dropout: float
) -> None:
    """sbh(34 + 5as/h)/t: every saved tensor is divided, to the byte."""
    changes: dict[str, Value] = {
        "framework.name": "textbook",
        "batch.micro_batch_size": micro_batch,
        "batch.sequence_length": sequence,
        "attention.implementation": attention,
        "dropout.attention": dropout,
        "dropout.hidden": dropout,
    }
    model = a_transformer("gpt")
    whole = predict(a_job(changes, model=model)).saved_activation_bytes_per_layer
    split = predict(a_job({**changes, "parallelism.tensor": degree, "parallelism.sequence_parallel": True}, model=model))
    assert split.saved_activation_bytes_per_layer * degree == whole


@given(jobs())
def test_one_layer_stands_for_all_of_them(job: Job) -> None:
    """Walking every layer gives the same highs, in bytes and in blocks, in every phase of every stage."""
    plan = plan_of(job)
    for stage in stages_of(plan):
        one, all_of_them = walk(plan, stage), walk(plan, stage, record=True)
        assume(one.states.trainable > 0)
        assert sizes_of(one.highs) == sizes_of(all_of_them.highs)
        assert one.states.resident == all_of_them.states.resident
        assert one.held_per_micro_batch == all_of_them.held_per_micro_batch


@given(jobs())
def test_what_a_step_allocates_it_frees(job: Job) -> None:
    """Events pair up, and after a recorded step nothing but the gradients is left."""
    plan = plan_of(job)
    for stage in stages_of(plan):
        walked = walk(plan, stage, record=True)
        assume(walked.states.trainable > 0)
        assume(not plan.companions)  # the root of a model that is only run stays gathered
        live: dict[int, int] = {}
        for number, nbytes in walked.events:
            if nbytes > 0:
                live[number] = nbytes
            else:
                assert live.pop(number) == -nbytes
        assert sum(live.values()) <= 4 * walked.states.trainable


@given(jobs(method__name="dpo", parallelism__pipeline=1), st.sampled_from(["none", "adapter"]))
def test_a_second_model_never_needs_less(job: Job, less: str) -> None:
    """A reference of its own needs at least what the policy alone, or its base as the reference, needs."""
    alone, beside = (predict(with_changes(job, [("method.reference", kind)])) for kind in (less, "full"))
    assert alone.allocated_bytes <= beside.allocated_bytes
    assert alone.states_bytes <= beside.states_bytes


@given(jobs(with_adapters=False, checkpointing__mode="none"), st.sets(st.sampled_from(FREEZABLE), min_size=1))
def test_frozen_never_needs_more(job: Job, names: set[str]) -> None:
    """Without gradients, states, and what gradients would read; nor does freezing more.

    (Under checkpointing transformers makes the output of a frozen embedding a leaf, whose gradient stays.)
    """
    some = replace(job, frozen=tuple(sorted(names))[:1])
    sizes = [predict(each).allocated_bytes for each in (job, some, replace(job, frozen=tuple(sorted(names))))]
    assert sizes == sorted(sizes, reverse=True)


@given(jobs(parallelism__pipeline=1), st.integers(1, 9))
def test_an_evaluation_never_needs_less(job: Job, batch: int) -> None:
    """A phase more, and a larger one with a larger batch; the step's own peaks stay."""
    sizes = [predict(with_changes(job, [("evaluate.micro_batch_size", size)])).allocated_bytes for size in (0, batch, batch + 1)]
    assert sizes == sorted(sizes)


@given(transformers(), adapters(), st.sampled_from(["none", "full"]))
def test_adapters_train_fewer_parameters(model: Transformer, lora: Lora, mode: str) -> None:
    """And add to the whole: the base is frozen."""
    plain = predict(a_job({"checkpointing.mode": mode}, model=model))
    adapted = predict(a_job({"checkpointing.mode": mode}, model=model, lora=lora))
    frozen = plain.parameters - plain.trainable_parameters
    assert adapted.trainable_parameters < plain.trainable_parameters
    assert (frozen > 0) == (model.block == "whisper")  # models/whisper/modeling_whisper.py: embed_positions.requires_grad_(False)
    assert adapted.parameters == plain.parameters + adapted.trainable_parameters


@pytest.mark.parametrize("block", MODELLED)
@pytest.mark.parametrize("sharding", SHARDINGS)
def test_every_family_shards(block: str, sharding: str) -> None:
    """No kind of sharding keeps more model states than one GPU alone, whatever the family."""
    model = a_transformer(block)
    alone = predict(a_job(model=model)).states_bytes
    assert predict(a_job({"parallelism.world_size": 4, "parallelism.sharding": sharding}, model=model)).states_bytes <= alone


@settings(max_examples=20)
@given(jobs(framework__name="huggingface"))
def test_a_replay_agrees_with_the_walk(job: Job) -> None:
    """Exact figures keep the allocated bytes; what is required lies between them and what is reserved."""
    quick, exact = predict(job), predict(job, exact=True)
    outside = exact.device_bytes - exact.reserved_bytes
    assert exact.allocated_bytes == quick.allocated_bytes
    assert exact.allocated_bytes <= exact.required_bytes - outside <= exact.reserved_bytes


@pytest.mark.parametrize("block", MODELLED)
def test_every_family_walks_in_every_framework(block: str) -> None:
    """Each pair of a family and a framework, with each attention, a padded batch and each way to checkpoint, has a figure."""
    model, ways = a_transformer(block), itertools.cycle(("none", "full", "selective"))
    for framework, attention in itertools.product(CHOICES["framework.name"], (*CHOICES["attention.implementation"], "sdpa")):
        changes = {
            "framework.name": framework,
            "attention.implementation": attention,
            "attention.mask": "padding",
            "checkpointing.mode": next(ways),
        }
        assert predict(a_job(changes, model=model)).allocated_bytes > 0


@pytest.mark.parametrize("block", MODELLED)
def test_every_family_takes_every_method(block: str) -> None:
    """Each method with an evaluation, a full state dict and a frozen embedding has a figure whose ledger sums."""
    for method in METHODS:
        changes: dict[str, Value] = {"method.name": method, "evaluate.micro_batch_size": 2, "save.full_state_dict": True}
        assert_sound(predict(replace(a_job(changes, model=a_transformer(block)), frozen=("embed_tokens", "layers.0"))))
