"""DeepSpeed configurations: the arithmetic of batches, earlier names, and what no field can say."""

from __future__ import annotations

import json

import pytest
from tests.unit.readers.trainer_launch import a_launch

from peakgate.readers.deepspeed import DeepSpeed
from peakgate.readers.launch import Launch
from peakgate.readers.reading import Reading
from peakgate.readers.settings import read_settings

READER = DeepSpeed()


def read(config: dict[str, object], flags: str = "", gpus: int = 8) -> Reading:
    """The reading of a script with a configuration, on so many GPUs."""
    start = f"deepspeed --num_gpus {gpus}" if gpus else "deepspeed"
    return READER.read(a_launch(f"{start} train.py --deepspeed_config ds.json --model_name gpt2 {flags}", {"ds.json": json.dumps(config)}))


def batch(found: Reading) -> tuple[object, object]:
    """Micro-batch and accumulation."""
    return found.get("batch.micro_batch_size"), found.get("batch.gradient_accumulation_steps")


MICRO, STEPS, GLOBAL = "train_micro_batch_size_per_gpu", "gradient_accumulation_steps", "train_batch_size"


@pytest.mark.parametrize(
    ("config", "want"),
    [
        ({GLOBAL: 64, MICRO: 2}, (2, 4)),
        ({GLOBAL: 64, STEPS: 2}, (4, 2)),
        ({GLOBAL: 64}, (8, None)),
        ({MICRO: 2, STEPS: 3}, (2, 3)),
        ({MICRO: 2}, (2, None)),
        ({GLOBAL: 64, MICRO: 2, STEPS: 4}, (2, 4)),
    ],
)
def test_two_of_three_batches_give_the_third(config: dict[str, object], want: tuple[object, object]) -> None:
    """On 8 data parallel ranks (runtime/config.py: _set_batch_related_parameters)."""
    found = read(config)
    assert batch(found) == want
    assert found.warnings == []


def test_ranks_that_share_a_batch_do_not_multiply_it() -> None:
    """Two tensor parallel ranks have one micro-batch."""
    assert batch(read({GLOBAL: 64, MICRO: 2, "tensor_parallel": {"autotp_size": 2}})) == (2, 8)


@pytest.mark.parametrize(
    ("config", "gpus"),
    [({GLOBAL: 64, MICRO: 2, STEPS: 3}, 8), ({GLOBAL: 64}, 0), ({GLOBAL: 4}, 8), ({GLOBAL: "many"}, 8)],
)
def test_batches_that_cannot_be_are_warnings(config: dict[str, object], gpus: int) -> None:
    """A contradiction, unknown GPUs, too few examples, and no number."""
    assert len(read(config, gpus=gpus).warnings) == 1


@pytest.mark.parametrize(
    ("zero", "want"),
    [
        ({"stage": 0}, "ddp"),
        ({"stage": 1}, "zero1"),
        ({"stage": 2}, "zero2"),
        ({"stage": 3}, "zero3"),
        (True, "zero1"),
        ({}, None),
    ],
)
def test_stages(zero: object, want: str | None) -> None:
    """Stage 0 is plain data parallelism, a bare `true` stage 1."""
    assert read({MICRO: 1, "zero_optimization": zero}).get("parallelism.sharding") == want


@pytest.mark.parametrize(
    ("config", "want"),
    [
        ({"fp16": {"enabled": True}}, "deepspeed-fp16"),
        ({"bf16": {"enabled": True}}, "deepspeed-bf16"),
        ({"bfloat16": {"enabled": True}}, "deepspeed-bf16"),
        ({"fp16": {"enabled": False}, "bf16": {"enabled": True}}, "deepspeed-bf16"),
        ({"fp16": {"enabled": False}}, None),
        ({"torch_autocast": {"enabled": True, "dtype": "bfloat16"}}, "amp-bf16"),
    ],
)
def test_formats(config: dict[str, object], want: str | None) -> None:
    """16-bit weights with a float32 copy, or torch's autocast."""
    assert read({MICRO: 1, **config}).get("precision.recipe") == want


def test_the_scripts_own_switch_fills_what_is_auto() -> None:
    """--bf16 beside `auto`."""
    assert read({MICRO: 1, "bf16": {"enabled": "auto"}}, "--bf16").get("precision.recipe") == "deepspeed-bf16"


@pytest.mark.parametrize(
    ("config", "want"),
    [
        ({"type": "Adam"}, ("adam", "fused")),
        ({"type": "AdamW", "params": {"torch_adam": True}}, ("adamw", "foreach")),
        ({"type": "Adam", "params": {"adam_w_mode": True}}, ("adamw", "fused")),
        ({"type": "Lamb"}, ("lamb", "fused")),
        ({"type": "OneBitLamb"}, (None, None)),
    ],
)
def test_optimizers(config: dict[str, object], want: tuple[str | None, str | None]) -> None:
    """DeepSpeed's own are fused; one that has no name in the document leaves the answer open."""
    found = read({MICRO: 1, "optimizer": config})
    assert (found.get("optimizer.name"), found.get("optimizer.implementation")) == want
    assert bool(found.unread) is (want[0] is None)


@pytest.mark.parametrize(
    "config",
    [
        {"zero_optimization": {"stage": 3, "zero_hpz_partition_size": 8}},
        {"zero_optimization": {"stage": 3, "mics_shard_size": 4}},
        {"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu", "ratio": 0.4}}},
        {"zero_optimization": {"stage": 2, "zenflow": {"topk_ratio": 0.1}}},
        {"compression_training": {"weight_quantization": {"shared_parameters": {"enabled": True}}}},
        {"hybrid_engine": {"enabled": True}},
        {"elasticity": {"enabled": True}},
    ],
)
def test_what_no_field_can_say_leaves_the_answer_open(config: dict[str, object]) -> None:
    """Each changes memory."""
    assert len(read({MICRO: 1, **config}).unread) == 1


def test_blocks_that_are_switched_off_say_nothing() -> None:
    """`enabled: false`, and a secondary partition of one GPU."""
    config = {
        "hybrid_engine": {"enabled": False},
        "elasticity": {"enabled": False},
        "zero_optimization": {"stage": 3, "zero_hpz_partition_size": 1},
    }
    assert read({MICRO: 1, **config}).unread == []


def test_activations_are_offloaded_only_where_checkpoints_are_made() -> None:
    """The block configures checkpoints that the script makes."""
    config: dict[str, object] = {MICRO: 1, "activation_checkpointing": {"cpu_checkpointing": True}}
    assert read(config).get("offload.activations") is None
    assert read(config, "--gradient_checkpointing").get("offload.activations") == "cpu"
    assert read(config, "--deepspeed-activation-checkpointing").get("checkpointing.reentrant") is True


def test_a_critic_leaves_the_answer_open() -> None:
    """DeepSpeed-Chat's third step."""
    launch = a_launch("deepspeed main.py --actor_model_name_or_path a --critic_model_name_or_path c --actor_zero_stage 3 --deepspeed")
    assert READER.recognises(launch)
    found = READER.read(launch)
    assert found.get("model.preset") == "a"
    assert "an actor beside a critic" in found.unread[0]


def test_a_configuration_in_the_script_leaves_the_answer_open() -> None:
    """Neither stage nor format is known; a file behind --config is."""
    found = READER.read(a_launch("deepspeed --num_gpus 2 train.py --model_name m --batch_size 4"))
    assert len(found.unread) == 1
    text = '{"train_micro_batch_size_per_gpu": 3, "zero_optimization": {"stage": 1}}'
    found = READER.read(a_launch("deepspeed --num_gpus 2 train.py --model_name m --config ds.json", {"ds.json": text}))
    assert (found.get("parallelism.sharding"), found.get("batch.micro_batch_size"), found.unread) == ("zero1", 3, [])


def test_what_the_trainer_fills_in_is_no_mistake() -> None:
    """`auto` says nothing and is no warning, whatever stands around it."""
    found = READER.read(a_launch("deepspeed train.py --deepspeed_config ds.json", {"ds.json": json.dumps(AUTO)}))
    assert found.warnings == []
    assert found.get("optimizer.name") == "adamw"
    assert batch(found) == (None, None)


AUTO = {
    MICRO: "auto",
    STEPS: "auto",
    GLOBAL: "auto",
    "optimizer": {"type": "AdamW", "params": {"lr": "auto"}},
    "zero_optimization": {"stage": 2, "reduce_bucket_size": "auto"},
}


@pytest.mark.parametrize(
    ("config", "flags"),
    [
        ({"data_efficiency": {"enabled": True, "data_routing": {"random_ltd": {"enabled": True}}}}, ""),
        ({MICRO: 1}, "--deepspeed_transformer_kernel"),
    ],
)
def test_what_changes_the_layers_is_unread(config: dict[str, object], flags: str) -> None:
    """Dropped tokens by the place that they have today, and a kernel for a whole layer."""
    assert len(read(config, flags).unread) == 1


def test_the_degree_of_gpt_neox() -> None:
    """neox_args.py: model_parallel_size is that of tensors."""
    assert read({MICRO: 1, "zero_optimization": {"stage": 1}}, "--model_parallel_size 2").get("parallelism.tensor") == 2


def test_a_configuration_that_accelerate_was_given() -> None:
    """A script with --zero_stage of its own under `accelerate launch --use_deepspeed --deepspeed_config_file`."""
    flags = "--mixed_precision bf16 --use_deepspeed --deepspeed_config_file ds.json --num_processes 4"
    text = json.dumps({"zero_optimization": {"stage": 3}})
    found = READER.read(a_launch(f"accelerate launch {flags} tune.py --model_name gpt2 --zero_stage 3", {"ds.json": text}))
    assert found.get("parallelism.sharding") == "zero3"
    assert found.get("precision.recipe") == "deepspeed-bf16"


def test_keys_of_sections_are_no_arguments() -> None:
    """A block of asynchronous input is no sequence, a section of checkpoints no switch."""
    config = {
        "zero_optimization": {"stage": 3},
        "aio": {"block_size": 8388608},
        "activation_checkpointing": {"partition_activations": True},
    }
    found = READER.read(a_launch("deepspeed train.py --deepspeed_config ds.json", {"ds.json": json.dumps(config)}))
    alone = READER.read(Launch(config=read_settings(json.dumps(config), "ds.json"), config_file="ds.json"))
    for each in (found, alone):
        assert each.get("batch.sequence_length") is None
        assert each.get("checkpointing.mode") is None
