"""What a search knows of many plans at once is what the predictor says of each."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from peakgate.memory.change import with_changes
from peakgate.memory.job import Batch, Checkpointing, Framework, Gpu, Job, Model, Parallelism, Precision
from peakgate.memory.predict import predict
from peakgate.memory.suggest.grid import part_of, patterns
from peakgate.memory.suggest.rank_figures import MOST_WALKS, forget_ranks
from peakgate.memory.suggest.space import Evaluated, Space, space_of

PLAIN = Job(
    model=Model(preset="llama-3.1-8b"),
    batch=Batch(micro_batch_size=4, sequence_length=2048),
    precision=Precision(recipe="bf16"),
    gpu=Gpu(type="h100-80gb"),
)
SPREAD = replace(PLAIN, gpu=Gpu(type="h100-80gb", count=16), parallelism=Parallelism(world_size=16))
JOBS = {
    "one GPU": PLAIN,
    "textbook": replace(PLAIN, framework=Framework(name="textbook"), precision=Precision(recipe="megatron-bf16")),
    "FSDP": replace(SPREAD, parallelism=Parallelism(world_size=16, sharding="fsdp"), framework=Framework(name="torchtitan")),
    "Megatron-LM": replace(SPREAD, framework=Framework(name="megatron"), precision=Precision(recipe="megatron-bf16")),
    "experts": replace(
        SPREAD, model=Model(preset="mixtral-8x7b"), framework=Framework(name="megatron"), precision=Precision(recipe="megatron-bf16")
    ),
}


def evaluated(job: Job) -> tuple[Space, Evaluated]:
    """A job on several GPUs with three degrees that its framework knows, one on one GPU with its micro-batches."""
    space = space_of(job, lambda _: 80_000_000_000)
    assert space is not None
    degrees = [place for place, option in enumerate(space.options) if option.degree]
    found = space.evaluate(tuple(degrees[-3:]) if space.world > 1 else ())
    assert found is not None
    return space, found


@pytest.mark.parametrize("name", JOBS)
def test_the_figures_of_a_plan_are_the_predictors(name: str) -> None:
    """Required and host bytes, of plans from all over the grid."""
    forget_ranks()
    job = JOBS[name]
    space, found = evaluated(job)
    for index in random.Random(1).sample(range(len(found.time)), min(8, len(found.time))):
        want = predict(with_changes(job, space.changes(found, index)))
        assert (int(found.required[index]), int(found.host[index])) == (want.required_bytes, want.host_bytes)


def test_walked_plans_and_compiled_ones_have_the_same_figures() -> None:
    """Few plans are walked when nothing is known of their rank; when it was compiled for many, they are evaluated."""
    many = replace(PLAIN, batch=Batch(micro_batch_size=1 << MOST_WALKS + 2, sequence_length=2048))
    few = replace(PLAIN, batch=Batch(micro_batch_size=2, sequence_length=2048))
    forget_ranks()
    _, walked = evaluated(few)
    forget_ranks()
    evaluated(many)
    _, compiled = evaluated(few)
    assert walked.required.tolist() == compiled.required.tolist()


def test_checkpointing_alone_is_told_apart() -> None:
    """Ranks of other words have walks of their own."""
    full = replace(PLAIN, checkpointing=Checkpointing(mode="full"))
    _, plain = evaluated(PLAIN)
    _, checkpointed = evaluated(full)
    assert int(checkpointed.required[0]) < int(plain.required[0])


def test_a_grid_without_a_legal_plan_is_none() -> None:
    """One GPU has no other degree of tensor parallelism."""
    space = space_of(JOBS["textbook"], lambda _: 80_000_000_000)
    assert space is not None
    (tensor,) = (place for place, option in enumerate(space.options) if option.degree == "tensor")
    assert space.evaluate((tensor,)) is None


def test_numbers_that_never_vary_stay_one_number() -> None:
    """A part of a grid has them still without a stride, and its patterns are those above 1."""
    _, found = evaluated(JOBS["Megatron-LM"])
    numbers = found.numbers
    part = part_of(numbers, numbers["pipeline"] > 2)
    assert part["sequence"].strides == (0,)
    assert set(part["pipeline"].tolist()) == {each for each in numbers["pipeline"].tolist() if each > 2}
    groups = patterns(numbers, ("micro_batch", "pipeline"))
    assert len(groups) > 1
    assert sorted(index for group in groups for index in group.tolist()) == list(range(len(found.time)))
