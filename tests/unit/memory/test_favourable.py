"""The most favourable value of each open field."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.memory.builders import a_bare_job, a_job, textbook_13b

from peakgate.memory.change import Value, value_at, with_changes
from peakgate.memory.choices import CHOICES
from peakgate.memory.favourable import FAR, OPEN, OPEN_WHEN_PARALLEL, OPEN_WHEN_TENSOR_PARALLEL, favourable
from peakgate.memory.job import Batch, Framework, Job, Lora, Model
from peakgate.memory.predict import predict

BARE = a_bare_job()


@pytest.mark.parametrize(("framework", "want"), [("torchtune", True), ("torch", True), ("huggingface", False), ("megatron", False)])
def test_a_step_in_the_backward_pass_is_open_where_a_framework_has_it(framework: str, *, want: bool) -> None:
    """Of transformers' trainer and of Megatron-LM a job cannot mean it."""
    job = replace(BARE, framework=Framework(name=framework))
    assert (("optimizer.in_backward", True) in favourable(job)) is want


def test_a_bare_job_leaves_everything_open() -> None:
    """Every row of the table, most telling first."""
    assert favourable(BARE) == (*OPEN, ("optimizer.in_backward", True))


def test_a_stated_field_is_closed() -> None:
    """Even when it is stated at its default."""
    for path, value in OPEN:
        assert path not in dict(favourable(with_changes(BARE, [(path, value)])))


def test_a_job_in_the_textbooks_terms_leaves_nothing_open() -> None:
    """What it does not state is the textbook's own."""
    assert favourable(textbook_13b()) == ()


@pytest.mark.parametrize(
    ("changes", "want"),
    [
        ({"gpu.count": 8}, {"parallelism.sharding": "fsdp"}),
        ({"parallelism.world_size": 8}, {"parallelism.sharding": "fsdp"}),
        ({"parallelism.world_size": 8, "parallelism.sharding": "ddp"}, {}),
        ({"parallelism.tensor": 2}, {"parallelism.sequence_parallel": True}),
        ({"parallelism.tensor": 2, "parallelism.sequence_parallel": False}, {}),
        ({"parallelism.tensor": 2, "gpu.count": 4}, {"parallelism.sharding": "fsdp", "parallelism.sequence_parallel": True}),
        ({"parallelism.pipeline": 2}, {}),
    ],
)
def test_what_parallelism_leaves_open(changes: dict[str, Value], want: dict[str, Value]) -> None:
    """Sharding where there is data parallelism, sequence parallelism where there is tensor parallelism."""
    found = dict(favourable(with_changes(BARE, changes.items())))
    assert {path: value for path, value in found.items() if path.startswith("parallelism")} == want


def test_what_must_be_switched_on_by_hand_is_closed() -> None:
    """Adapters and offload are absent when they are not stated."""
    assert not [path for path, _ in favourable(a_job()) if path.startswith(("lora", "offload", "gpu", "batch"))]


def test_every_row_is_a_field_with_a_legal_value() -> None:
    """Paths exist, and words are in the table of choices."""
    for path, value in (*OPEN, *OPEN_WHEN_PARALLEL, *OPEN_WHEN_TENSOR_PARALLEL):
        assert value_at(Job(), path) is None
        assert path not in CHOICES or value in CHOICES[path]


@pytest.mark.parametrize("lora", [None, Lora()])
@pytest.mark.parametrize("preset", ["llama-3.1-8b", "qwen2.5-7b", "gpt2-xl", "mixtral-8x7b", "gemma-2-9b"])
@pytest.mark.parametrize("world", [1, 8])
def test_a_real_job_never_needs_more_under_them(preset: str, lora: Lora | None, world: int) -> None:
    """All open fields at once at their most favourable: a rejection that holds there holds everywhere."""
    job = Job(model=Model(preset=preset), batch=Batch(micro_batch_size=4, sequence_length=1024), lora=lora)
    job = with_changes(job, [("gpu.count", world)])
    best = predict(with_changes(job, favourable(job)))
    assert best.required_bytes <= predict(job).required_bytes


def test_a_world_that_is_not_stated_is_open() -> None:
    """Sharded states of a job that names no number of GPUs may be as small as many GPUs make them."""
    job = a_job({"parallelism.sharding": "fsdp"})
    assert ("parallelism.world_size", FAR) in favourable(job)
    assert "parallelism.world_size" not in dict(favourable(with_changes(job, [("gpu.count", 8)])))


def test_a_cap_says_nothing_about_the_data() -> None:
    """Sequences of a capped batch may be short; what decides is the longest of them."""
    job = a_job({"batch.sequence_length_is": "cap"})
    assert "batch.sequence_lengths.max" in dict(favourable(job))
    assert "batch.sequence_lengths.max" not in dict(favourable(with_changes(job, [("batch.sequence_lengths.max", 900)])))


@pytest.mark.parametrize("degrees", [{"pipeline": 3}, {"tensor": 2, "context": 3}, {"expert": 6}, {}])
def test_a_far_world_has_room_for_the_degrees(degrees: dict[str, int]) -> None:
    """The largest world that is tried is a multiple of every stated degree."""
    changes: dict[str, Value] = {f"parallelism.{name}": value for name, value in degrees.items()}
    job = a_job({**changes, "parallelism.sharding": "fsdp"})
    assert predict(with_changes(job, favourable(job))).allocated_bytes > 0


@pytest.mark.parametrize("framework", ["torch", "torchtitan", "megatron", "huggingface"])
def test_a_ring_is_the_favourable_way_of_context_parallelism(framework: str) -> None:
    """The way that keys and values come is open where the job does not say, and a gather needs no less than a ring."""
    changes: dict[str, Value] = {"framework.name": framework, "parallelism.context": 4, "parallelism.world_size": 4}
    job = a_job({**changes, "batch.sequence_length": 4096, "checkpointing.mode": "full", "attention.implementation": "flash"})
    assert ("parallelism.context_type", "ring") in favourable(job)
    needs = {way: predict(with_changes(job, [("parallelism.context_type", way)])).required_bytes for way in ("ring", "all-gather")}
    assert needs["ring"] <= needs["all-gather"]
