"""OpenRLHF's flags of both generations."""

from __future__ import annotations

import pytest
from tests.unit.readers.finetuning import command

NEW = "deepspeed --num_gpus 8 --module openrlhf.cli.train_sft --model.model_name_or_path m/m"
OLD = "deepspeed --num_gpus 8 --module openrlhf.cli.train_sft --pretrain m/m"
RAY = "python3 -m openrlhf.cli.train_ppo_ray --actor.model_name_or_path m/m"


@pytest.mark.parametrize(
    "words",
    [
        f"{NEW} --train.batch_size 256 --train.micro_batch_size 2 --ds.zero_stage 3 --ds.adam_offload --ds.packing_samples",
        f"{OLD} --bf16 --flash_attn --train_batch_size 256 --micro_train_batch_size 2 --zero_stage 3 --adam_offload --packing_samples",
    ],
)
def test_both_generations_mean_the_same(words: str) -> None:
    """Flags with and without a section."""
    found = command(words)
    want = {
        "batch.gradient_accumulation_steps": 16,
        "batch.micro_batch_size": 2,
        "batch.packed": True,
        "parallelism.sharding": "zero3",
        "offload.optimizer": "cpu",
        "precision.recipe": "deepspeed-bf16",
        "attention.implementation": "flash",
        "batch.sequence_length": 2048,
    }
    assert {path: found.get(path) for path in want} == want


def test_an_older_run_without_bf16_is_float32() -> None:
    """And without --flash_attn its attention is eager; today both are on."""
    assert command(f"{OLD} --flash_attn").get("precision.recipe") == "fp32"
    assert command(f"{OLD} --bf16").get("attention.implementation") == "eager"
    assert command(NEW).get("attention.implementation") == "flash"


def test_a_ring_takes_part_in_the_accumulation() -> None:
    """batch × ring / micro-batch / GPUs."""
    found = command(f"{NEW} --train.batch_size 64 --train.micro_batch_size 1 --ds.ring_attn_size 4")
    assert (found.get("batch.gradient_accumulation_steps"), found.get("parallelism.context")) == (32, 4)


@pytest.mark.parametrize(
    ("estimator", "want"), [("gae", "ppo"), ("group_norm", "grpo"), ("dr_grpo", "grpo"), ("rloo", None), ("reinforce", None)]
)
def test_the_advantage_is_the_method(estimator: str, want: str | None) -> None:
    """What is not counted is unread."""
    found = command(f"{RAY} --algo.advantage.estimator {estimator}")
    assert found.get("method.name") == want
    assert bool(found.unread) == (want is None)


def test_an_engine_on_the_actors_cards() -> None:
    """Only where all models share them."""
    engine = "--vllm.num_engines 4 --vllm.gpu_memory_utilization 0.4 --vllm.enable_sleep"
    shared, apart = command(f"{RAY} {engine} --train.colocate_all"), command(f"{RAY} {engine}")
    assert shared.get("method.generation.mode") == "colocated"
    assert (shared.get("method.generation.memory_fraction"), shared.get("method.generation.sleep")) == (0.4, True)
    assert apart.get("method.generation.mode") == "separate"


@pytest.mark.parametrize("flag", ["--ref_offload", "--ref.offload"])
def test_a_reference_in_main_memory_is_a_warning(flag: str) -> None:
    """It is counted on the card."""
    (warning,) = command(f"{OLD.replace('train_sft', 'train_dpo')} {flag}").warnings
    assert warning.startswith("method.reference: the reference's weights stay in main memory")


@pytest.mark.parametrize(
    ("flags", "want"),
    [("--bf16 --packing_samples", "flash"), ("--packing_samples --attn_implementation eager", "flash"), ("--bf16", "eager")],
)
def test_packed_samples_switch_flash_attention_on(flags: str, want: str) -> None:
    """As its programs do, with a warning."""
    assert command(f"{OLD} {flags}").get("attention.implementation") == want
