"""The numbers that a search may give a plan."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.unit.memory.builders import a_job, plan_of

from peakgate.memory.change import Value
from peakgate.memory.suggest.grid import Range, changes_of, entry, grid, patterns, sequences_of


def plans(changes: dict[str, Value], wanted: Range, *, free_batch: bool = False) -> list[dict[str, int]]:
    """Every plan's numbers."""
    plan = plan_of(a_job(changes))
    numbers = grid(plan, replace(wanted, sequences=0 if free_batch else sequences_of(plan)))
    return [entry(numbers, index) for index in range(len(numbers["micro_batch"]))]


MEGATRON: dict[str, Value] = {"framework.name": "megatron", "precision.recipe": "megatron-bf16", "parallelism.world_size": 8}
BATCH: dict[str, Value] = {"batch.micro_batch_size": 4, "batch.gradient_accumulation_steps": 3}


def test_smaller_micro_batches_keep_the_global_batch() -> None:
    """The job's own comes first; what does not divide it is left out."""
    found = [(each["micro_batch"], each["accumulation"]) for each in plans(BATCH, Range())]
    assert found == [(4, 3), (2, 6), (1, 12)]


def test_larger_ones_on_request() -> None:
    """As far as the accumulation reaches."""
    found = [(each["micro_batch"], each["accumulation"]) for each in plans(BATCH, Range(larger=True))]
    assert found == [(4, 3), (12, 1), (6, 2), (3, 4), (2, 6), (1, 12)]


def test_a_free_global_batch_leaves_the_accumulation_alone() -> None:
    """Fewer sequences a step."""
    found = [(each["micro_batch"], each["accumulation"]) for each in plans(BATCH, Range(), free_batch=True)]
    assert found == [(4, 3), (2, 3), (1, 3)]


def test_a_fixed_micro_batch_is_the_only_one() -> None:
    """Whatever else varies."""
    assert {each["micro_batch"] for each in plans(BATCH | MEGATRON, Range(degrees=frozenset({"tensor"}), world=8, fixed_batch=True))} == {4}


@pytest.mark.parametrize(
    ("degree", "want"),
    [("tensor", {2, 4, 8}), ("context", {2, 4, 8}), ("pipeline", set()), ("expert", set())],
)
def test_degrees_divide_what_they_split(degree: str, want: set[int]) -> None:
    """8 heads; 3 layers, which no number of equal stages divides; no experts. None takes the job's own value."""
    assert {each[degree] for each in plans(BATCH | MEGATRON, Range(degrees=frozenset({degree}), world=8))} == want


def test_some_layers_are_parts_of_a_stage() -> None:
    """A quarter, a half and three quarters of 24 layers, and of the 12 of two stages."""
    wanted = Range(degrees=frozenset({"checkpoint_layers"}), world=8, fixed_batch=True)
    deep: dict[str, Value] = {**BATCH, **MEGATRON, "model.transformer.layers": 24}
    assert [each["checkpoint_layers"] for each in plans(deep, wanted)] == [6, 12, 18]
    assert [each["checkpoint_layers"] for each in plans({**deep, "parallelism.pipeline": 2}, wanted)] == [3, 6, 9]
    assert plans({**deep, "model.transformer.layers": 2}, wanted) == []


def test_degrees_multiply_to_the_gpus_and_keep_the_batch() -> None:
    """What one takes of the data parallel ranks, accumulation gives back."""
    wanted = Range(degrees=frozenset({"tensor", "context"}), world=8)
    found = plans(BATCH | MEGATRON, wanted)
    assert found
    for each in found:
        assert each["tensor"] * each["context"] * each["data"] == 8
        assert each["micro_batch"] * each["accumulation"] * each["data"] == 4 * 3 * 8


def test_more_gpus_divide_the_accumulation() -> None:
    """What does not divide is left out: 3 steps on twice as many GPUs only with half the micro-batch."""
    found = [
        (each["micro_batch"], each["accumulation"], each["data"]) for each in plans(BATCH | {"parallelism.world_size": 1}, Range(world=2))
    ]
    assert found == [(2, 3, 2), (1, 6, 2)]


def test_only_what_differs_is_written_into_the_job() -> None:
    """Micro-batch and steps, a degree with its sequence parallelism, and GPUs under both their names."""
    job = a_job(BATCH | MEGATRON)
    plan = plan_of(job)
    numbers = grid(plan, Range(degrees=frozenset({"tensor"}), world=16, sequences=sequences_of(plan)))
    written = dict(changes_of(job, plan, entry(numbers, 0)))
    assert written == {
        "parallelism.tensor": 2,
        "parallelism.sequence_parallel": True,
        "parallelism.world_size": 16,
        "gpu.count": 16,
    }
    own = grid(plan, Range(world=8, sequences=sequences_of(plan)))
    assert changes_of(job, plan, entry(own, 0)) == ()


def test_a_stated_shard_degree_follows() -> None:
    """Shards over all data parallel ranks stay shards over all of them."""
    job = a_job({**BATCH, "parallelism.world_size": 8, "parallelism.sharding": "fsdp", "parallelism.shard_degree": 8})
    plan = plan_of(job)
    numbers = grid(plan, Range(world=16, sequences=sequences_of(plan)))
    assert dict(changes_of(job, plan, entry(numbers, 0)))["parallelism.shard_degree"] == 16


def test_plans_are_grouped_by_what_is_above_one() -> None:
    """Whether there is accumulation, and whether there is a second data parallel rank, are words."""
    numbers = {"micro_batch": np.ones(4, dtype=np.int64), "accumulation": np.array([1, 2, 4, 1]), "data": np.array([1, 1, 2, 1])}
    assert [list(group) for group in patterns(numbers, ("accumulation", "data"))] == [[0, 3], [1], [2]]
