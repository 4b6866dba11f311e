"""Model states of one rank: bytes a parameter by recipe, sharding, adapters, quantised bases, offload."""

from __future__ import annotations

import pytest
from tests.unit.memory.builders import a_job, a_plan, plan_of

from peakgate.memory.change import Value
from peakgate.memory.job import Lora
from peakgate.memory.plan import Plan
from peakgate.memory.predict import predict
from peakgate.memory.profiles import PROFILES
from peakgate.memory.recipes import RECIPES
from peakgate.memory.states import States, quantisable, states_of
from peakgate.memory.weights import Weight

ELEMENTS = 96_000
WEIGHTS = [
    Weight(name="linear.q", elements=10_000, trainable=True, count=9),
    Weight(name="norm.layer", elements=6_000, trainable=True, count=1),
]
COUNTERS = 4 * 10
"""One fp32 step count a tensor (torch.optim)."""


def bytes_per_parameter(plan: Plan) -> float:
    """Parameters, gradients, master weights and optimizer states of one rank, without Adam's step counts."""
    states = states_of(plan, WEIGHTS)
    return (states.parameters + states.trained_bytes + states.master_weights + states.optimizer_states - COUNTERS) / ELEMENTS


@pytest.mark.parametrize(
    ("recipe", "want"),
    [
        ("fp32", 16),
        ("amp-bf16", 16),
        ("amp-fp16", 16),
        ("bf16", 8),
        ("bf16-master", 16),
        ("fsdp-bf16", 16),
        ("megatron-bf16", 18),
        ("megatron-fp16", 18),
        ("deepspeed-bf16", 16),
        ("deepspeed-fp16", 16),
    ],
)
def test_bytes_a_parameter_of_each_recipe(recipe: str, want: float) -> None:
    """The table of precision recipes, unsharded, with AdamW."""
    assert bytes_per_parameter(a_plan({"precision.recipe": recipe})) == want


def test_every_recipe_is_held() -> None:
    """The list above is the table's."""
    assert len(RECIPES) == 10


@pytest.mark.parametrize(
    ("recipe", "sharding", "ranks", "want"),
    [
        ("fsdp-bf16", "fsdp", 8, 16 / 8),
        ("fsdp-bf16", "hsdp", 4, 16 / 4),
        ("deepspeed-bf16", "ddp", 8, 16),
        ("deepspeed-bf16", "zero1", 8, 4 + 12 / 8),
        ("deepspeed-bf16", "zero2", 8, 2 + 14 / 8),
        ("deepspeed-bf16", "zero3", 8, 16 / 8),
        ("fp32", "zero1", 4, 8 + 8 / 4),
        ("bf16", "zero2", 2, 2 + 6 / 2),
    ],
)
def test_sharding_divides_states(recipe: str, sharding: str, ranks: int, want: float) -> None:
    """ZeRO-1 divides optimizer states and master weights, ZeRO-2 gradients as well, ZeRO-3 and FSDP parameters too."""
    changes: dict[str, Value] = {
        "precision.recipe": recipe,
        "parallelism.sharding": sharding,
        "parallelism.world_size": 8,
        "parallelism.shard_degree": ranks,
    }
    assert bytes_per_parameter(a_plan(changes)) == pytest.approx(want, rel=1e-4)


@pytest.mark.parametrize("ranks", [2, 8])
def test_megatrons_distributed_optimizer_divides_twelve_bytes(ranks: int) -> None:
    """6 + 12/dp bytes a parameter."""
    changes: dict[str, Value] = {
        "framework.name": "megatron",
        "precision.recipe": "megatron-bf16",
        "framework.megatron.distributed_optimizer": True,
        "parallelism.world_size": ranks,
    }
    assert bytes_per_parameter(a_plan(changes)) == pytest.approx(6 + 12 / ranks, rel=1e-4)


@pytest.mark.parametrize(
    ("optimizer", "want"),
    [
        ("adamw", 8),
        ("adam", 8),
        ("lamb", 8),
        ("sgd", 0),
        ("sgd-momentum", 4),
        ("lion", 4),
        ("muon", 4),
        ("adafactor", 0),
        ("adamw-8bit", 2 + 2 / 64),
        ("paged-adamw-8bit", 2 + 2 / 64),
    ],
)
def test_states_of_each_optimizer(optimizer: str, want: float) -> None:
    """Bytes a trained parameter in fp32; 8-bit states carry one fp32 scale for 256 of them."""
    states = states_of(a_plan({"precision.recipe": "fp32", "optimizer.name": optimizer}), WEIGHTS)
    assert states.optimizer_states // ELEMENTS == int(want)
    assert states.optimizer_states == pytest.approx(want * ELEMENTS, abs=COUNTERS)


def test_a_stated_format_wins_over_the_recipe() -> None:
    """fp32 gradients under bf16."""
    assert bytes_per_parameter(a_plan({"precision.recipe": "bf16", "precision.gradients": "float32"})) == 10


def test_offloaded_optimizer_states_are_not_on_the_gpu() -> None:
    """They are the host's: three fp32 copies for each rank of a node."""
    answer = predict(a_job({"offload.optimizer": "cpu"}))
    assert not [line for line in answer.ledger if line.category == "optimizer_states"]
    assert answer.host_bytes == 12 * answer.parameters


@pytest.mark.parametrize("recipe", ["bf16-master", "deepspeed-bf16", "megatron-bf16"])
def test_an_offloaded_optimizer_takes_the_master_weights_along(recipe: str) -> None:
    """They are what it steps: in the host's memory beside its moments."""
    kept, gone = (a_plan({"precision.recipe": recipe, "offload.optimizer": where}) for where in ("none", "cpu"))
    weights = [Weight(name="linear.q", elements=1000, trainable=True, count=1)]
    assert states_of(kept, weights).master_weights == 4000
    assert states_of(gone, weights).master_weights == states_of(gone, weights).optimizer_states == 0


def adapted(lora: Lora, changes: dict[str, Value] | None = None) -> States:
    """States of a frozen base of 90,000 and 6,000 elements under adapters of 1,000."""
    frozen = [Weight(name=w.name, elements=w.elements, trainable=False, count=w.count) for w in WEIGHTS]
    adapter = Weight(name="adapter.q", elements=1_000, trainable=True, count=1)
    return states_of(plan_of(a_job({"precision.recipe": "bf16", **(changes or {})}, lora=lora)), [*frozen, adapter])


def test_adapters_alone_have_gradients_and_states() -> None:
    """2 bytes a frozen parameter; 4 + 4 + 8 an fp32 adapter's."""
    states = adapted(Lora())
    assert states.parameters == 2 * ELEMENTS + 4 * 1_000
    assert (states.trained_bytes, states.optimizer_states, states.trainable) == (4_000, 8_000 + 4, 1_000)


@pytest.mark.parametrize(
    ("base", "double", "want"),
    [
        ("int8", False, 90_000),
        ("nf4", False, 9 * (5_000 + 4 * 157)),
        ("nf4", True, 9 * (5_000 + 157 + 4)),
        ("int4", False, 9 * (5_000 + 4 * 157)),
    ],
)
def test_a_quantised_base_shrinks_its_linear_layers(base: str, double: bool, want: int) -> None:
    """Half a byte and an fp32 scale for 64 elements; a byte of scale under double quantisation; norms stay as they are."""
    assert adapted(Lora(base_dtype=base, double_quant=double)).parameters == want + 2 * 6_000 + 4 * 1_000


@pytest.mark.parametrize(
    ("name", "want"),
    [("linear.q", True), ("linear.head", False), ("linear.router", False), ("norm.layer", False), ("embedding.V", False)],
)
def test_the_head_and_the_router_are_not_quantised(name: str, want: bool) -> None:
    """Only the other linear layers are."""
    assert quantisable(name, PROFILES["huggingface"].whole) == want


@pytest.mark.parametrize(("recipe", "want"), [("bf16", True), ("fp32", True), ("bf16-master", False), ("megatron-bf16", False)])
def test_when_optimizer_states_appear(recipe: str, want: bool) -> None:
    """torch.optim makes them at the first step; frameworks with master weights at the start."""
    assert states_of(a_plan({"precision.recipe": recipe}), WEIGHTS).lazy_optimizer == want
