"""The fixes of Lesson 6, in its order of cost."""

from __future__ import annotations

import pytest
from tests.unit.memory.builders import a_job, a_transformer, textbook_13b

from peakgate.memory.change import Value, with_changes
from peakgate.memory.job import Job, Lora, Model
from peakgate.memory.predict import predict
from peakgate.memory.suggest import FULL_CHECKPOINTING_TIME, fixes


def titles(job: Job) -> list[str]:
    """What is offered, in order."""
    return [fix.title for fix in fixes(job)]


def test_the_textbook_job_is_offered_the_seeds_list() -> None:
    """FlashAttention, selective, smaller micro-batches, full checkpointing, tensor then pipeline parallelism, offload last."""
    assert titles(textbook_13b()) == [
        "FlashAttention",
        "selective recomputation of the attention core",
        "micro-batch 4 with 2 accumulation steps",
        "micro-batch 2 with 4 accumulation steps",
        "micro-batch 1 with 8 accumulation steps",
        "full activation checkpointing",
        "tensor and sequence parallelism over 2 GPUs",
        "tensor and sequence parallelism over 4 GPUs",
        "tensor and sequence parallelism over 8 GPUs",
        "pipeline parallelism over 2 stages",
        "pipeline parallelism over 4 stages",
        "pipeline parallelism over 8 stages",
        "offload of the optimizer to the CPU",
    ]


def test_sharding_comes_right_after_attention_when_data_parallel() -> None:
    """ZeRO-1 and ZeRO-2 cost plain data parallelism's communication; ZeRO-3 costs 1.5 times as much and comes with checkpointing."""
    found = titles(textbook_13b({"gpu.count": 8}))
    assert found[:5] == [
        "FlashAttention",
        "selective recomputation of the attention core",
        "ZeRO-1",
        "ZeRO-2",
        "micro-batch 4 with 2 accumulation steps",
    ]
    assert found[found.index("full activation checkpointing") + 1] == "ZeRO-3"


@pytest.mark.parametrize(
    ("changes", "want_absent"),
    [
        ({"attention.implementation": "flash"}, ("FlashAttention", "selective")),
        ({"checkpointing.mode": "selective"}, ("selective",)),
        ({"checkpointing.mode": "full"}, ("selective", "full activation")),
        ({"batch.micro_batch_size": 1}, ("micro-batch",)),
        ({"gpu.count": 8, "parallelism.sharding": "zero1"}, ("ZeRO-1",)),
        ({"gpu.count": 8, "parallelism.sharding": "zero2"}, ("ZeRO-1", "ZeRO-2")),
        ({"gpu.count": 8, "parallelism.sharding": "zero3"}, ("ZeRO-", "pipeline")),
        ({"parallelism.tensor": 2}, ("tensor",)),
        ({"parallelism.pipeline": 2}, ("pipeline", "ZeRO-3")),
        ({"offload.optimizer": "cpu"}, ("offload",)),
    ],
)
def test_what_the_job_has_is_not_offered(changes: dict[str, Value], want_absent: tuple[str, ...]) -> None:
    """Nor what would not go together with it."""
    assert not [title for title in titles(textbook_13b(changes)) if title.startswith(want_absent)]


def test_the_global_batch_stays_the_same() -> None:
    """Micro-batch × accumulation × data degree, whatever else changes."""
    job = textbook_13b({"batch.gradient_accumulation_steps": 3, "gpu.count": 8})
    for fix in fixes(job):
        changed = with_changes(job, fix.changes)
        model = (changed.parallelism.tensor or 1) * (changed.parallelism.pipeline or 1)
        world = changed.parallelism.world_size or changed.gpu.count or 1
        assert (changed.batch.micro_batch_size or 0) * (changed.batch.gradient_accumulation_steps or 0) * world // model == 8 * 3 * 8


def test_the_costs_are_the_seeds() -> None:
    """FlashAttention 1, selective 1 + s/(18h + 3s), full 8/6; what depends on links is not costed."""
    cost = {fix.title: fix.relative_step_time for fix in fixes(textbook_13b())}
    assert cost["FlashAttention"] == 1
    assert cost["selective recomputation of the attention core"] == pytest.approx(1 + 2048 / (18 * 2048 + 3 * 2048))
    assert cost["full activation checkpointing"] == FULL_CHECKPOINTING_TIME == 8 / 6
    assert cost["pipeline parallelism over 2 stages"] == 0


def test_each_fix_of_the_textbook_job_helps() -> None:
    """Every one of them lowers what the worst GPU needs, each smaller micro-batch more than the last."""
    before = predict(textbook_13b()).required_bytes
    after = {fix.title: predict(with_changes(textbook_13b(), fix.changes)).required_bytes for fix in fixes(textbook_13b())}
    assert all(size < before for size in after.values()), after


def test_a_degree_that_does_not_divide_the_heads_is_not_offered() -> None:
    """12 heads: 2 and 4 GPUs, not 8; 2 key-value heads: not 4."""
    twelve = a_job(model=a_transformer(heads=12, kv_heads=12, hidden_size=96))
    assert [title for title in titles(twelve) if title.startswith("tensor")] == [
        "tensor and sequence parallelism over 2 GPUs",
        "tensor and sequence parallelism over 4 GPUs",
    ]
    assert len([title for title in titles(a_job()) if title.startswith("tensor")]) == 1


def test_what_the_job_states_elsewhere_is_not_contradicted() -> None:
    """A stated shard degree of 3 rules out what would leave it with another number of ranks."""
    job = a_job({"parallelism.world_size": 6, "parallelism.sharding": "fsdp", "parallelism.shard_degree": 3})
    offered = fixes(job)
    assert offered
    for fix in offered:
        predict(with_changes(job, fix.changes))


def test_adapters_leave_no_optimizer_to_offload() -> None:
    """Their states are small already."""
    assert "offload of the optimizer to the CPU" not in titles(a_job(lora=Lora()))


@pytest.mark.parametrize(
    "job", [a_job(model=Model(parameters=1)), a_job({"batch.micro_batch_size": 0}), a_job({"batch.sequence_length": 0})]
)
def test_a_job_that_does_not_say_enough_is_offered_nothing(job: Job) -> None:
    """A fix without a figure would be a guess."""
    assert fixes(job) == ()
