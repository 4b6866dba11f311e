"""Which levers a job has: what its framework, its card and the job itself allow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from tests.unit.memory.builders import a_job, a_plan

from peakgate.memory.capacity import capability_of
from peakgate.memory.change import Value
from peakgate.memory.job import Lora
from peakgate.memory.suggest.levers import FASTER, LITGPT_ONE_GPU, LITGPT_SCRIPT, OPTIONS, TRAINER_OFFLOADS, Option, options_of

ADAPTERS = Lora(rank=8)


def options(changes: Mapping[str, Value], *, lora: Lora | None = None, table: tuple[Option, ...] = OPTIONS) -> list[Option]:
    """What is offered for `a_job` with changes."""
    return options_of(a_job(changes, lora=lora), a_plan(changes, lora=lora), table)


def offered(path: str, value: Value, found: list[Option]) -> list[Option]:
    """The options that make this change."""
    return [option for option in found if (path, value) in option.changes]


TWO_SHARDS: dict[str, Value] = {"gpu.count": 2, "parallelism.sharding": "fsdp"}


@pytest.mark.parametrize(
    ("changes", "want"),
    [
        ({"framework.name": "litgpt"}, True),
        ({"framework.name": "torchtune"}, True),
        ({"framework.name": "huggingface"}, True),
        ({"framework.name": "torchtitan"}, False),
        ({"framework.name": "huggingface", "gpu.count": 2, "parallelism.sharding": "ddp"}, True),
        ({"framework.name": "huggingface", **TWO_SHARDS}, False),
        ({"framework.name": "litgpt", "gpu.count": 2, "parallelism.sharding": "ddp"}, False),
    ],
)
def test_adapters_may_stand_on_four_bits_where_the_base_is_whole(changes: dict[str, Value], want: bool) -> None:
    """What everybody tries first with LoRA; LitGPT quantises on one GPU only, and shards of 4-bit weights need a storage of their own."""
    found = [each for each in offered("lora.base_dtype", "nf4", options(changes, lora=ADAPTERS)) if each.lever == "base"]
    assert bool(found) == want
    assert all(each.alters == "numerics" for each in found)


def test_a_base_that_is_quantised_and_a_job_without_adapters_have_none() -> None:
    """A full fine-tune is offered adapters first."""
    for lora in (Lora(rank=8, base_dtype="nf4"), None):
        assert "base" not in {each.lever for each in options({"framework.name": "huggingface"}, lora=lora)}


@pytest.mark.parametrize("name", ["adamw-8bit", "paged-adamw-8bit"])
def test_states_in_eight_bits_go_with_a_step_inside_the_backward_pass(name: str) -> None:
    """As in torchtune's recipe for one GPU; a fused step or a second step inside the backward pass is nothing to add there."""
    found = options({"framework.name": "torchtune", "optimizer.name": "adamw", "optimizer.in_backward": True})
    assert offered("optimizer.name", name, found)
    assert not offered("optimizer.implementation", "fused", found)
    assert not offered("optimizer.in_backward", True, found)


@pytest.mark.parametrize(("gpu", "want"), [("v100-16gb", False), ("t4-16gb", False), ("a100-40gb", True), ("", True)])
def test_bfloat16_is_offered_to_cards_that_multiply_it(gpu: str, want: bool) -> None:
    """Volta and Turing only emulate it; an unknown card may do it."""
    changes: dict[str, Value] = {"precision.recipe": "fp32", **({"gpu.type": gpu} if gpu else {})}
    job = a_job(changes)
    found = options_of(job, replace(a_plan(changes), capability=capability_of(job)))
    assert bool(offered("precision.recipe", "bf16", found)) == want


@pytest.mark.parametrize(
    ("sharding", "want"),
    [
        ("ddp", []),
        ("zero1", ["zero2", "zero3"]),
        ("zero2", ["zero3"]),
        ("zero3", []),
    ],
)
def test_a_hugging_face_job_under_deepspeed_goes_on_with_it(sharding: str, want: list[str]) -> None:
    """Its stages, and its offload; under plain data parallelism the trainer's own FSDP is offered."""
    found = options({"gpu.count": 2, "parallelism.sharding": sharding})
    assert [stage for stage in ("zero2", "zero3") if offered("parallelism.sharding", stage, found)] == want
    assert bool(offered("offload.optimizer", "cpu", found)) == sharding.startswith("zero")
    assert bool(offered("parallelism.sharding", "fsdp", found)) == (sharding == "ddp")


@pytest.mark.parametrize(("name", "want"), [("torchtune", [()]), ("litgpt", [LITGPT_SCRIPT]), ("composer", [])])
def test_shards_go_to_the_host_where_the_framework_lets_them(name: str, want: list[tuple[str, ...]]) -> None:
    """Composer refuses it, LitGPT's script has it written out."""
    found = offered("offload.parameters", "cpu", options({"framework.name": name, **TWO_SHARDS}))
    assert [each.conditions for each in found] == want


def test_what_has_no_option_in_a_framework_says_so() -> None:
    """LitGPT checkpoints under FSDP alone; transformers' own trainer does not move checkpoints."""
    one, two = options({"framework.name": "litgpt"}), options({"framework.name": "litgpt", **TWO_SHARDS})
    assert [each.conditions for each in offered("checkpointing.mode", "full", one)] == [LITGPT_ONE_GPU]
    assert [each.conditions for each in offered("checkpointing.mode", "full", two)] == [()]
    assert [each.conditions for each in offered("offload.activations", "cpu", options({}))] == [TRAINER_OFFLOADS]
    full: dict[str, Value] = {"framework.name": "litgpt", "checkpointing.mode": "full", **TWO_SHARDS}
    assert [each.conditions for each in offered("checkpointing.mode", "none", options(full, table=FASTER))] == [LITGPT_SCRIPT]


@pytest.mark.parametrize(("stated", "want"), [(None, True), ("vocab-parallel", True), ("full", False)])
def test_the_loss_of_a_split_vocabulary_can_be_fused(stated: str | None, want: bool) -> None:
    """Also where the job says what Megatron-LM does without a word; beside whole logits the switch would do nothing."""
    changes: dict[str, Value] = {"framework.name": "megatron"}
    changes |= {"loss.implementation": stated} if stated else {}
    assert bool(offered("framework.megatron.cross_entropy_fusion", True, options(changes))) == want
