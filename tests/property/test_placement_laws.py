"""Laws of placement: what a degree divides, which rank is the worst, and what the ranks hold together."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.property.jobs import MODELLED, jobs
from tests.unit.memory.builders import (
    a_job,
    a_plan,
    a_routed_transformer,
    a_transformer,
    first_walk,
    of_stage,
    plan_of,
    sizes_of,
    stages_of,
)

from peakgate.memory.change import Value, with_changes
from peakgate.memory.job import Job
from peakgate.memory.model import describe
from peakgate.memory.pipeline import stages
from peakgate.memory.plan import Plan
from peakgate.memory.predict import predict
from peakgate.memory.prediction import Prediction
from peakgate.memory.resolve import resolve
from peakgate.memory.states import states_of
from peakgate.memory.step import walk

ROUTED = a_routed_transformer()
DEGREES = (1, 2, 4, 8)
FRAMEWORKS = ("huggingface", "torch", "torchtitan", "megatron", "textbook")


def held(changes: dict[str, Value], block: str = "llama") -> int:
    """Activation blocks that the first stage keeps of one micro-batch."""
    plan = a_plan(changes, model=ROUTED if block == "deepseek_v3" else a_transformer(block, layers=8, kv_heads=8))
    return first_walk(plan).held_per_micro_batch


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.parametrize("mode", ["none", "full", "selective"])
@pytest.mark.parametrize("field", ["tensor", "context", "pipeline"])
def test_a_larger_degree_never_raises_what_a_rank_keeps(framework: str, mode: str, field: str) -> None:
    """Of one micro-batch; with sequence parallelism beside tensor parallelism."""
    base: dict[str, Value] = {
        "framework.name": framework,
        "checkpointing.mode": mode,
        "batch.sequence_length": 512,
        "attention.implementation": "flash",
        "parallelism.sequence_parallel": True,
    }
    kept = [held(base | {f"parallelism.{field}": degree, "parallelism.world_size": degree}) for degree in DEGREES]
    assert kept == sorted(kept, reverse=True)


@pytest.mark.parametrize("mode", ["none", "full", "selective"])
def test_expert_parallelism_never_raises_what_a_rank_keeps(mode: str) -> None:
    """Balanced routing gives every rank as many rows, and fewer experts fewer padded ones."""
    base: dict[str, Value] = {
        "framework.name": "torchtitan",
        "parallelism.sharding": "fsdp",
        "parallelism.world_size": 8,
        "checkpointing.mode": mode,
    }
    kept = [held(base | {"parallelism.expert": degree}, "deepseek_v3") for degree in DEGREES]
    assert kept == sorted(kept, reverse=True)


def of_every_stage(job: Job) -> list[Prediction]:
    """One prediction a stage."""
    described = describe(job.model)
    assert described.architecture is not None
    resolved = resolve(job, described.architecture, job.parallelism.world_size or 1)
    every = stages(resolved.plan.degrees, resolved.plan.architecture.dims["L"], resolved.plan.accumulation)
    return [of_stage(resolved.plan, stage, resolved, described) for stage in every]


@settings(max_examples=40)
@given(jobs(), st.sampled_from(("1f1b", "gpipe", "zero-bubble")), st.sampled_from(FRAMEWORKS))
def test_the_worst_rank_is_the_highest_of_all(job: Job, schedule: str, framework: str) -> None:
    """Stages that are not walked hold no more than one that is, whatever the schedule and the framework."""
    changed = with_changes(job, [("parallelism.pipeline_schedule", schedule), ("framework.name", framework)])
    assume((changed.parallelism.pipeline or 1) > 1)
    assert predict(changed).allocated_bytes == max(each.allocated_bytes for each in of_every_stage(changed))


@given(st.integers(1, 6).flatmap(lambda stages: st.lists(st.integers(1, 5), min_size=stages, max_size=stages)))
def test_stages_hold_the_model_between_them(split: list[int]) -> None:
    """Their layers, the embedding and the head add up to the parameters of the model, evenly split or not."""
    job = a_job(model=a_transformer(layers=sum(split)))
    plan = plan_of(job)
    staged = replace(plan, degrees=replace(plan.degrees, pipeline=len(split), stage_layers=tuple(split)))
    assert sum(_elements(staged)) == predict(job).parameters


def test_a_tied_head_is_held_on_both_ends() -> None:
    """The last stage has a copy of the embedding (Megatron-LM: shared_embedding_or_output_weight), so the stages hold the table twice."""
    job = a_job({"framework.name": "megatron"}, model=a_transformer(layers=4, tied_embeddings=True, vocab_size=256))
    plan = plan_of(job)
    staged = replace(plan, degrees=replace(plan.degrees, pipeline=2))
    assert sum(_elements(staged)) == predict(job).parameters + 64 * 256


def _elements(plan: Plan) -> list[int]:
    """Parameters of each stage."""
    return [states_of(plan, walk(plan, stage).weights).elements for stage in stages_of(plan)]


@pytest.mark.parametrize("block", MODELLED)
@pytest.mark.parametrize("sharding", ["zero3", "fsdp"])
def test_shards_hold_the_states_between_them(block: str, sharding: str) -> None:
    """Whatever the world, its ranks' states sum to those of one GPU, but for padding and one counter a tensor."""
    alone = predict(a_job(model=a_transformer(block))).states_bytes
    for world in (2, 4, 8):
        each = predict(a_job({"parallelism.world_size": world, "parallelism.sharding": sharding}, model=a_transformer(block))).states_bytes
        assert alone <= each * world <= alone * 1.05


@given(jobs(parallelism__sharding="ddp"), st.integers(2, 5))
def test_more_replicas_change_nothing_on_a_rank(job: Job, times: int) -> None:
    """Plain data parallelism divides nothing: a larger world is more of the same rank."""
    world = job.parallelism.world_size or 1
    assume(world > (job.parallelism.tensor or 1) * (job.parallelism.pipeline or 1))  # else the first replica brings buckets
    assert predict(job).allocated_bytes == predict(with_changes(job, [("parallelism.world_size", world * times)])).allocated_bytes


@settings(max_examples=30)
@given(st.sampled_from(("torch", "torchtitan")), st.sampled_from(("1f1b", "gpipe", "zero-bubble")), st.integers(2, 8))
def test_one_layer_stands_for_all_of_a_stage(framework: str, schedule: str, micro_batches: int) -> None:
    """Also where gradients of a pipeline are added up whole, weights stay gathered and weight gradients wait."""
    changes: dict[str, Value] = {
        "framework.name": framework,
        "parallelism.pipeline": 2,
        "parallelism.world_size": 4,
        "parallelism.sharding": "fsdp",
        "parallelism.pipeline_schedule": schedule,
        "batch.gradient_accumulation_steps": micro_batches,
        "precision.recipe": "fsdp-bf16",
        "checkpointing.mode": "none",
    }
    plan = a_plan(changes, model=a_transformer(layers=10))
    for stage in stages_of(plan):
        assert sizes_of(walk(plan, stage).highs) == sizes_of(walk(plan, stage, record=True).highs)


@pytest.mark.parametrize(("framework", "block"), [("megatron", "mixtral"), ("torchtitan", "deepseek_v3")])
def test_uneven_routing_fills_the_fullest_rank(framework: str, block: str) -> None:
    """More rows for its experts never keep less, and as many as there are when a rank holds all experts."""
    base: dict[str, Value] = {"framework.name": framework, "checkpointing.mode": "none", "parallelism.world_size": 4}
    base["parallelism.sharding"] = "zero1" if framework == "megatron" else "fsdp"
    spread = [held(base | {"parallelism.expert": 2, "parallelism.expert_imbalance": factor}, block) for factor in (1.0, 1.5, 2.0)]
    assert spread[0] == held(base | {"parallelism.expert": 2}, block)
    assert spread[0] < spread[1] < spread[2]
    assert held(base | {"parallelism.expert_imbalance": 2.0}, block) == held(base, block)
