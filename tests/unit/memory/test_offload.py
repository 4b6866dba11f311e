"""States in the host's memory: what is left on the GPU, and what the host holds."""

from __future__ import annotations

import pytest
from tests.unit.memory.builders import a_job, a_wide_transformer

from peakgate.memory.change import Value
from peakgate.memory.offload import ALL, on_host
from peakgate.memory.predict import predict
from peakgate.memory.prediction import Prediction

WORLD, STATES = 4, ("parameters", "gradients", "master_weights", "optimizer_states")
MODEL = a_wide_transformer()


def answer(sharding: str, recipe: str = "bf16", **changes: Value) -> Prediction:
    """The prediction for a small model on four GPUs; names of offloaded parts with where they go."""
    offload = {f"offload.{what}": where for what, where in changes.items()}
    base: dict[str, Value] = {"parallelism.sharding": sharding, "parallelism.world_size": WORLD, "precision.recipe": recipe}
    return predict(a_job({**base, "gpu.count": WORLD, **offload}, model=MODEL))


def resident(prediction: Prediction) -> dict[str, int]:
    """Bytes of states at the peak."""
    return {line.category: line.bytes for line in prediction.ledger if line.category in STATES}


@pytest.mark.parametrize("sharding", ["fsdp", "hsdp"])
def test_fsdp_keeps_no_state_on_the_gpu(sharding: str) -> None:
    """Parameters, gradients and the optimizer's states are the host's; what is gathered stays (fsdp: CPUOffload)."""
    plain, moved = answer(sharding), answer(sharding, parameters="cpu")
    assert moved.undecided == plain.undecided == ()
    assert not {"parameters", "optimizer_states"} & set(resident(moved))
    assert resident(plain)["parameters"] == 2 * -(-plain.parameters // WORLD)
    assert moved.allocated_bytes < plain.allocated_bytes
    assert moved.host_bytes == pytest.approx(8 * plain.parameters, rel=1e-3)


def test_the_ranks_shard_comes_to_the_gpu_for_its_gather() -> None:
    """In fp32, before it is cast (_flat_param.py: _use_low_precision_shard): so offloading saves the states, less one unit's shard."""
    plain, moved = answer("fsdp", "fsdp-bf16"), answer("fsdp", "fsdp-bf16", parameters="cpu")
    saved = plain.live_bytes - moved.live_bytes
    assert 0 < saved <= 16 * -(-plain.parameters // WORLD)


@pytest.mark.parametrize("stage", ["zero1", "zero2", "zero3"])
def test_zero_moves_the_fp32_partitions_with_the_optimizer(stage: str) -> None:
    """Master weights and moments, 12 bytes a parameter of the rank's partition, less a buffer for the gradients that are on their way."""
    plain, moved = answer(stage, "deepspeed-bf16"), answer(stage, "deepspeed-bf16", optimizer="cpu")
    assert set(resident(moved)) - {"gradients"} == {"parameters"}
    assert plain.live_bytes - moved.live_bytes >= 11 * plain.parameters // WORLD
    assert moved.host_bytes == pytest.approx(12 * moved.parameters, rel=1e-3)


def test_stage_three_may_move_the_parameters_too() -> None:
    """Only what is gathered is left of them."""
    moved = answer("zero3", "deepspeed-bf16", optimizer="cpu", parameters="cpu")
    assert moved.undecided == ()
    assert not set(resident(moved)) - {"gradients"}
    assert moved.host_bytes == pytest.approx(14 * moved.parameters, rel=1e-3)


@pytest.mark.parametrize("sharding", ["ddp", "zero2"])
def test_other_parameters_are_not_counted(sharding: str) -> None:
    """Nobody moves them, so the answer is UNDECIDED."""
    assert any("offload.parameters" in note for note in answer(sharding, parameters="cpu").undecided)


def test_nothing_is_moved_unasked() -> None:
    """Every sharding keeps its states where they were."""
    from tests.unit.memory.builders import a_plan

    for sharding in ("none", "ddp", "zero1", "zero2", "zero3", "fsdp", "hsdp"):
        assert not on_host(a_plan({"parallelism.sharding": sharding}))
    assert set(ALL) == set(STATES)


def test_a_quantised_base_is_moved_as_it_is_stored() -> None:
    """Four bits a weight and their scales, not the format that it is computed in."""
    lora: dict[str, Value] = {"lora.rank": 8, "lora.targets": ("all-linear",), "lora.base_dtype": "nf4"}
    base: dict[str, Value] = {"parallelism.sharding": "fsdp", "parallelism.world_size": WORLD, "offload.parameters": "cpu"}
    plain, narrow = predict(a_job(base, model=MODEL)), predict(a_job({**base, **lora}, model=MODEL))
    assert plain.host_bytes > 4 * narrow.host_bytes > 4 * plain.parameters // 2


def test_adapters_have_their_own_format_in_the_hosts_memory() -> None:
    """Half the bytes of adapters in bfloat16: their weights, gradients and moments."""
    lora: dict[str, Value] = {"lora.rank": 8, "lora.targets": ("all-linear",), "lora.base_dtype": "nf4"}
    base: dict[str, Value] = {"parallelism.sharding": "fsdp", "parallelism.world_size": WORLD, "offload.parameters": "cpu", **lora}
    narrow, wide = (predict(a_job({**base, "lora.adapter_dtype": dtype}, model=MODEL)) for dtype in ("bfloat16", "float32"))
    want_saved = 2 * (1 + 1 + 2) * narrow.trainable_parameters
    assert wide.host_bytes - narrow.host_bytes == pytest.approx(want_saved, rel=1e-3)
