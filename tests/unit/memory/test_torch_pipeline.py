"""torch's pipeline: what a stage holds of other micro-batches, whole gradients under FSDP2, weight gradients that wait."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

import pytest
from tests.unit.memory.builders import a_job, a_plan, a_transformer, stages_of

from peakgate.memory.change import Value
from peakgate.memory.fully_shard import REDUCE_SCATTER
from peakgate.memory.pipeline import Stage
from peakgate.memory.plan import Plan
from peakgate.memory.predict import predict
from peakgate.memory.prediction import LedgerLine
from peakgate.memory.profiles.torch_pipeline import resident
from peakgate.memory.step import Walk, walk

PIPELINE: dict[str, Value] = {
    "framework.name": "torch",
    "parallelism.pipeline": 4,
    "parallelism.world_size": 4,
    "batch.gradient_accumulation_steps": 8,
}
SHARDED: dict[str, Value] = {**PIPELINE, "parallelism.world_size": 8, "parallelism.sharding": "fsdp", "precision.recipe": "fsdp-bf16"}
HIDDEN = 2 * 32 * 64 * 2
"""Bytes of a micro-batch's hidden state in 16 bits."""


def planned(changes: Mapping[str, Value] = MappingProxyType({}), base: Mapping[str, Value] = MappingProxyType(PIPELINE)) -> Plan:
    """Eight layers on four stages."""
    return a_plan({**base, **changes}, model=a_transformer(layers=8))


def lines(plan: Plan, stage: Stage) -> dict[str, int]:
    """Bytes by item."""
    found: list[LedgerLine] = resident(plan, stage, [])
    return {line.item: line.bytes for line in found}


def walked(stage: int, changes: Mapping[str, Value] = MappingProxyType({}), base: Mapping[str, Value] = MappingProxyType(PIPELINE)) -> Walk:
    """The step of one stage."""
    plan = planned(changes, base)
    return walk(plan, stages_of(plan)[stage])


def test_a_stage_keeps_what_it_received_until_the_step_ends() -> None:
    """At the last forward pass of the steady phase 8 - (4 - i) micro-batches are done: a buffer and its gradient of each."""
    plan = planned()
    want = {0: 0, 1: 5, 2: 6, 3: 7}
    for stage in stages_of(plan):
        assert lines(plan, stage)["received inputs and their gradients"] == 2 * want[stage.number] * HIDDEN


def test_every_micro_batch_has_a_buffer_for_its_gradient() -> None:
    """All but the last stage receive one; the walk holds one of the eight itself."""
    plan = planned()
    assert [lines(plan, stage)["received gradients"] for stage in stages_of(plan)] == [7 * HIDDEN, 7 * HIDDEN, 7 * HIDDEN, 0]


def test_outputs_in_flight_are_not_emptied() -> None:
    """A stage's fwd_cache names them (Megatron-LM empties them once they are sent)."""
    plan = planned()
    assert [lines(plan, stage)["outputs in flight"] for stage in stages_of(plan)] == [3 * HIDDEN, 2 * HIDDEN, HIDDEN, 0]


@pytest.mark.parametrize(("version", "kept"), [("0.2.0", 7), ("0.2.1", 0)])
def test_the_last_stage_keeps_every_output(version: str, kept: int) -> None:
    """Logits of each micro-batch, until torchtitan asks for none (e5ef99aab)."""
    changes = {**PIPELINE, "framework.name": "torchtitan", "framework.version": version}
    found = {line.item: line.bytes for line in predict(a_job(changes, model=a_transformer(layers=4, vocab_size=8000))).ledger}
    assert found.get("outputs of the last stage", 0) == kept * 2 * 32 * 8000 * 2


def test_without_a_pipeline_nothing_is_held() -> None:
    """One stage receives nothing."""
    plan = a_plan({"framework.name": "torch"})
    assert resident(plan, stages_of(plan)[0], []) == []


# ---- FSDP2 on a stage
def test_gradients_are_added_up_whole_in_the_reduce_format() -> None:
    """4 bytes of each of the stage's elements, where a shard of two ranks has 2; and one layer's in the compute format."""
    step = walked(1, base=SHARDED)
    whole, layer = 4 * step.states.elements, 2 * step.states.elements // 2
    assert whole <= step.highs["backward"].by["gradients"] <= whole + layer


def test_only_shards_are_left_for_the_optimizer() -> None:
    """The sums are reduced once, behind the last micro-batch."""
    step = walked(1, base=SHARDED)
    assert step.pools[REDUCE_SCATTER] == pytest.approx(4 * step.states.elements / 2, rel=0.05)


def test_more_micro_batches_add_no_gradients() -> None:
    """They are added in place."""
    few, many = (walked(1, {"batch.gradient_accumulation_steps": n}, SHARDED).highs["backward"].by["gradients"] for n in (8, 32))
    assert few == many


def test_torchtitan_keeps_a_pipelines_weights_gathered() -> None:
    """fsdp_reshard_after_forward = "default" does not reshard under a pipeline, unless the job says so."""
    titan: dict[str, Value] = {"framework.name": "torchtitan"}
    assert not planned(titan, SHARDED).reshard_after_forward
    assert planned(titan | {"framework.fsdp.reshard_after_forward": True}, SHARDED).reshard_after_forward
    assert planned(titan | {"parallelism.pipeline": 1}, SHARDED).reshard_after_forward


# ---- zero-bubble
def test_zero_bubble_holds_as_many_micro_batches_on_every_stage() -> None:
    """Four, and on stage i the gradients of i + 1 that wait."""
    plan = planned({"parallelism.pipeline_schedule": "zero-bubble"})
    assert [(stage.in_flight, stage.waiting) for stage in stages_of(plan)] == [(4, 1), (4, 2), (4, 3), (4, 4)]


def test_what_waits_are_the_gradients_of_products_and_norms() -> None:
    """A Llama layer: q, k, v, o, gate, up, down, and the weights of two norms."""
    late = [walked(stage, {"parallelism.pipeline_schedule": "zero-bubble"}).highs["forward"].by["activations"] for stage in (1, 2)]
    d = planned().architecture.dims
    layer = 2 * 32 * 2 * (d["q"] + 2 * d["kv"] + d["h"] + 2 * d["f"] + d["h"] + 2 * d["h"])
    assert late[1] - late[0] == 2 * layer


@pytest.mark.parametrize(
    ("changes", "want"),
    [
        ({}, False),
        ({"checkpointing.mode": "full"}, True),
        ({"framework.compile": True}, True),
        ({"framework.name": "huggingface"}, True),
        ({"framework.name": "megatron"}, True),
    ],
)
def test_other_zero_bubbles_are_left_open(changes: dict[str, Value], want: bool) -> None:
    """A schedule that splits the backward pass is torch's, of layers as they are."""
    said = predict(a_job({**PIPELINE, "parallelism.pipeline_schedule": "zero-bubble", **changes}, model=a_transformer(layers=8))).undecided
    assert any("zero-bubble" in note for note in said) is want


def test_the_worst_rank_says_why() -> None:
    """What it holds of its pipeline: layers of an uneven split, micro-batches in flight, weight gradients that wait."""
    uneven = replace(a_job(PIPELINE, model=a_transformer(layers=8)).parallelism, stage_layers=(1, 5, 1, 1))
    reason = predict(replace(a_job(PIPELINE, model=a_transformer(layers=8)), parallelism=uneven)).rank_reason
    assert reason == "stage 1: it has 5 layers, and it holds 3 micro-batches in flight"
    late = predict(a_job({**PIPELINE, "parallelism.pipeline_schedule": "zero-bubble"}, model=a_transformer(layers=8))).rank_reason
    assert "4 of them waiting for their weight gradients" in late
