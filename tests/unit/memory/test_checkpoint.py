"""Stretches of the forward pass that are run again."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.memory.builders import a_job, a_plan, a_transformer, plan_of, stages_of

from peakgate.memory.change import Value
from peakgate.memory.job import Checkpointing, Job, Lora
from peakgate.memory.predict import predict
from peakgate.memory.step import walk

FULL: dict[str, Value] = {"checkpointing.mode": "full"}
EAGER: dict[str, Value] = {"attention.implementation": "eager"}


def held(changes: dict[str, Value], layers: int = 12, lora: Lora | None = None) -> int:
    """Bytes of activations that are kept from the forward pass to the backward pass."""
    plan = a_plan(changes, model=a_transformer(layers=layers), lora=lora)
    return walk(plan, stages_of(plan)[0]).held_per_micro_batch


def test_a_layer_costs_its_input() -> None:
    """2 bytes × tokens × hidden a layer."""
    assert held(FULL, 20) - held(FULL, 12) == 8 * 2 * (2 * 32) * 64


@pytest.mark.parametrize("every", [2, 3, 4, 6])
def test_every_k_layers_cost_one_input(every: int) -> None:
    """And all of them are rebuilt at once, so fewer inputs are bought with a higher backward pass."""
    assert held(FULL) - held({**FULL, "checkpointing.every": every}) == (12 - 12 // every) * 2 * (2 * 32) * 64


@pytest.mark.parametrize("reentrant", [False, True])
def test_the_first_layers_alone_may_be_checkpointed(reentrant: bool) -> None:
    """What a layer keeps without a checkpoint, less its input, is saved for each of the first layers only."""
    changes: dict[str, Value] = {**FULL, "checkpointing.reentrant": reentrant}
    sizes = [held({**changes, "checkpointing.layers": n}) for n in (2, 4, 6)]
    assert sizes[0] - sizes[1] == sizes[1] - sizes[2] > 0
    assert held({}) > sizes[0] > sizes[2] > held(changes)


def test_selective_drops_the_scores_and_keeps_the_rest() -> None:
    """With flash attention there is nothing to drop."""
    selective: dict[str, Value] = {"checkpointing.mode": "selective"}
    assert held(EAGER) > held({**EAGER, **selective}) > held({**EAGER, **FULL})
    flash: dict[str, Value] = {"attention.implementation": "flash"}
    assert held(flash) == held({**flash, **selective})


@pytest.mark.parametrize("targets", [("gate_proj",), ("q_proj",), ("all-linear",)])
@pytest.mark.parametrize("mode", ["none", "selective", "full"])
def test_a_core_without_a_gradient_is_not_rebuilt(targets: tuple[str, ...], mode: str) -> None:
    """Under adapters on the feed-forward part the first layer's attention is never run again."""
    answer = predict(a_job({**EAGER, "checkpointing.mode": mode}, lora=Lora(targets=targets)))
    assert answer.live_bytes > answer.states_bytes


def test_a_reentrant_stretch_ends_as_the_other_kind_does() -> None:
    """The same gradients are left, to the byte."""
    ends = []
    for reentrant in (False, True):
        plan = a_plan({**FULL, "checkpointing.reentrant": reentrant, "checkpointing.every": 3}, model=a_transformer(layers=7))
        ends.append(walk(plan, stages_of(plan)[0]).highs["optimizer"].by["gradients"])
    assert ends[0] == ends[1]


@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize("every", [1, 2, 3])
def test_a_rebuilt_stretch_leaves_nothing_behind(every: int, reentrant: bool) -> None:
    """A second run stops in the middle of a layer; what it had made until then goes with it, and only gradients stay."""
    changes: dict[str, Value] = {**FULL, "checkpointing.every": every, "checkpointing.reentrant": reentrant}
    plan = a_plan(changes, model=a_transformer(layers=6))
    recorded = walk(plan, stages_of(plan)[0], record=True)
    assert sum(nbytes for _, nbytes in recorded.events) == 2 * recorded.states.trainable


def of_modules(*modules: str) -> Job:
    """A small Llama on Hugging Face's kernels with a checkpoint around each of these modules, or without any."""
    job = a_job({"batch.sequence_length": 256, "attention.implementation": "sdpa"}, model=a_transformer(layers=8))
    return replace(job, checkpointing=Checkpointing(mode="selective", modules=modules)) if modules else job


def test_a_wrapped_mlp_keeps_its_input_alone() -> None:
    """checkpoint_wrapper around each feed-forward part: gate, activation, up and product are made again."""

    def kept(job: Job) -> int:
        plan = plan_of(job)
        (stage,) = stages_of(plan)
        return walk(plan, stage).held_per_micro_batch

    assert kept(of_modules()) - kept(of_modules("mlp")) == pytest.approx(8 * 4 * 2 * 96 * 2 * 256, rel=1e-3)
    assert predict(of_modules("mlp")).undecided == ()


@pytest.mark.parametrize("name", ["layernorm", "mla_up_proj", "moe_act"])
def test_modules_that_are_no_part_of_a_model_are_undecided(name: str) -> None:
    """A norm of its own, or the latent projections of Megatron-LM."""
    assert any(note.startswith("checkpointing.modules") for note in predict(of_modules("mlp", name)).undecided)
