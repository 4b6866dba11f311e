"""A compiled step gives what the walk gives: every figure, for every shape that it does not give up on."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.property.jobs import MODELLED, jobs
from tests.unit.memory.builders import a_job, a_transformer, plan_of, stages_of

from peakgate.memory.change import Value, with_changes
from peakgate.memory.choices import CHOICES
from peakgate.memory.compiled_step import Shape, compile_step
from peakgate.memory.compose import ITEMS
from peakgate.memory.counts import Counts, counts_of
from peakgate.memory.forms import UntraceableError
from peakgate.memory.job import Job
from peakgate.memory.methods.rows import OWN_LOSSES
from peakgate.memory.pipeline import Stage
from peakgate.memory.plan import Plan
from peakgate.memory.predict import predict
from peakgate.memory.prediction import JobError, Prediction
from peakgate.memory.step import walk
from peakgate.memory.structures import forget_structures

OTHER_SHAPES = ((1, 64), (3, 1000), (7, 8192))


def figures(counts: Counts) -> dict[str, object]:
    """All that a step comes to. Of moments that are equally high the ledger may be that of another one."""
    plain = {name: getattr(counts, name) for name in ("blocks", "live", "pools", "hole", "saved")}
    ledgers = {phase: sum(counts.by(phase).values()) for phase in counts.blocks}
    return {**plain, "by": ledgers, "resident": list(counts.resident), "points": list(counts.points())}


def walked(plan: Plan, stage: Stage, shape: Shape) -> dict[str, object]:
    """The figures of the walk of a plan with another shape."""
    target = shape[2] if len(shape) > 2 else 0
    other = replace(plan, micro_batch=shape[0], sequence=shape[1], target=target)
    return figures(counts_of(other, stage, walk(other, stage)))


def assert_compiled_is_walked(plan: Plan, others: Iterable[Shape] = OTHER_SHAPES) -> None:
    """Of each stage: its own shape must be given, others may be given up on."""
    own = (plan.micro_batch, plan.sequence, *([plan.target] if plan.target else []))
    for stage in stages_of(plan):
        step = compile_step(plan, stage)
        for shape in (own, *((*other, *own[2:]) for other in others)):
            found = step.at(shape)
            assert found is not None or shape != own
            if found is not None:
                assert figures(found) == walked(plan, stage, shape)


@settings(deadline=None, max_examples=50)
@given(jobs())
def test_a_compiled_step_is_the_walk(job: Job) -> None:
    """For random jobs: peaks, ledgers, pools, resident lines, timeline. Other models and batches have shapes of their own."""
    plan = plan_of(job)
    if plan.companions or plan.evaluation_batch or plan.loss in OWN_LOSSES:
        with pytest.raises(UntraceableError):
            compile_step(plan, stages_of(plan)[0])
    else:
        assert_compiled_is_walked(plan)


@pytest.mark.parametrize("block", MODELLED)
def test_every_family_compiles(block: str) -> None:
    """Each family in each framework, with and without recomputation."""
    model, ways = a_transformer(block), itertools.cycle(("none", "full", "selective"))
    for framework in CHOICES["framework.name"]:
        job = a_job({"framework.name": framework, "checkpointing.mode": next(ways)}, model=model)
        assert_compiled_is_walked(plan_of(job), OTHER_SHAPES[1:2])


@settings(deadline=None, max_examples=25)
@given(jobs(), st.lists(st.tuples(st.integers(1, 9), st.integers(1, 2048)), min_size=4, max_size=5))
def test_a_job_that_was_seen_before_has_the_same_answer(job: Job, shapes: list[tuple[int, int]]) -> None:
    """Whatever was compiled on the way, an answer or a refusal is that of a service that has seen nothing yet."""
    several = [replace(job, batch=replace(job.batch, micro_batch_size=b, sequence_length=s)) for b, s in shapes]
    alone: list[Prediction | str] = []
    for each in several:
        forget_structures()
        alone.append(answer(each))
    forget_structures()
    assert [answer(each) for each in several] == alone


def answer(job: Job) -> Prediction | str:
    """What a caller gets."""
    try:
        return without_moment(predict(job))
    except JobError as error:
        return str(error)


def without_moment(found: Prediction) -> Prediction:
    """An answer without the lines that tell equally high moments apart."""
    return replace(found, ledger=tuple(line for line in found.ledger if line.item not in ITEMS.values()))


@pytest.mark.parametrize("framework", ["litgpt", "torchtune"])
@pytest.mark.parametrize("traced", [256, 250, 1, 8])
def test_another_number_of_chunks_is_another_walk(framework: str, traced: int) -> None:
    """A loss in chunks of the sequence: lengths with as many chunks are evaluated, others given up on, also at whole multiples."""
    job = a_job({"framework.name": framework, "framework.version": "0.4", "loss.implementation": "chunked", "batch.micro_batch_size": 2})
    plan = plan_of(with_changes(job, [("batch.sequence_length", traced)]))
    assert_compiled_is_walked(plan, [(2, length) for length in (1, 7, 8, 9, 15, 127, 128, 129, 249, 255, 256, 257, 300, 384, 385, 1024)])


@pytest.mark.parametrize("framework", ["huggingface", "torchtune", "torchtitan"])
def test_layers_that_leave_nothing_are_seen(framework: str) -> None:
    """A checkpoint that goes to the host: each layer ends where it began, and its highest moment still counts."""
    changes: dict[str, Value] = {"checkpointing.mode": "full", "offload.activations": "cpu", "framework.name": framework}
    assert_compiled_is_walked(plan_of(a_job(changes, model=a_transformer("llama", layers=6))))


def test_large_sizes_have_the_ledger_of_the_walk() -> None:
    """Where no two moments are equally high, line by line."""
    plan = plan_of(a_job({"batch.sequence_length": 4096, "batch.micro_batch_size": 3}))
    (stage,) = stages_of(plan)
    found, want = compile_step(plan, stage).at((3, 4096)), counts_of(plan, stage, walk(plan, stage))
    assert found is not None
    assert [dict(found.by(phase)) for phase in found.blocks] == [dict(want.by(phase)) for phase in want.blocks]
