"""verl's overrides: whose sizes are the trainer's, and what a run keeps on the card."""

from __future__ import annotations

import pytest
from tests.unit.readers.finetuning import command, config

BASE = (
    "python3 -m verl.trainer.main_ppo actor_rollout_ref.model.path=Qwen/Qwen3-8B"
    " actor_rollout_ref.rollout.name=vllm trainer.n_gpus_per_node=8"
)


@pytest.mark.parametrize(
    ("estimator", "want"), [("grpo", "grpo"), ("gae", "ppo"), ("rloo", None), ("reinforce_plus_plus", None), ("remax", None)]
)
def test_the_estimator_is_the_method(estimator: str, want: str | None) -> None:
    """Two are counted, the others are unread."""
    found = command(f"{BASE} algorithm.adv_estimator={estimator}")
    assert found.get("method.name") == want
    assert bool(found.unread) == (want is None)


def test_the_rollouts_tensor_parallelism_is_not_the_trainers() -> None:
    """It is vLLM's own."""
    assert command(f"{BASE} actor_rollout_ref.rollout.tensor_model_parallel_size=4").get("parallelism.tensor") is None


def test_moving_states_between_phases_is_no_offload_of_the_update() -> None:
    """param_offload brings them back for the update; offload_policy does not."""
    actor = "actor_rollout_ref.actor.fsdp_config"
    assert command(f"{BASE} {actor}.param_offload=True {actor}.optimizer_offload=True").get("offload.parameters") is None
    assert command(f"{BASE} {actor}.offload_policy=True").get("offload.parameters") == "cpu"


def test_a_mini_batch_is_multiplied_with_the_answers_and_divided_by_ranks() -> None:
    """256 prompts of 4 answers over 8 GPUs in micro-batches of 16."""
    actor = "actor_rollout_ref.actor"
    found = command(f"{BASE} {actor}.ppo_mini_batch_size=256 {actor}.ppo_micro_batch_size_per_gpu=16 actor_rollout_ref.rollout.n=4")
    assert found.get("batch.gradient_accumulation_steps") == 8
    whole = command(f"{BASE} {actor}.ppo_micro_batch_size=128")
    assert whole.get("batch.micro_batch_size") == 16


def test_with_adapters_the_actor_is_its_own_reference() -> None:
    """A penalty asks for a reference."""
    assert command(f"{BASE} actor_rollout_ref.actor.use_kl_loss=True").get("method.reference") == "full"
    assert (
        command(f"{BASE} actor_rollout_ref.actor.use_kl_loss=True actor_rollout_ref.model.lora_rank=8").get("method.reference") == "adapter"
    )


def test_sharding_in_groups() -> None:
    """fsdp_size below the number of GPUs."""
    found = command(f"{BASE} trainer.nnodes=2 actor_rollout_ref.actor.fsdp_config.fsdp_size=8")
    assert (found.get("parallelism.sharding"), found.get("parallelism.shard_degree")) == ("hsdp", 8)


def test_a_number_that_is_none_is_said() -> None:
    """A size that is a word decides nothing, and a warning names it."""
    found = command(BASE.replace("=8", "=many"))
    assert found.get("parallelism.world_size") is None
    assert "trainer.n_gpus_per_node" in found.warnings[0]


def test_a_config_by_itself() -> None:
    """The same keys as a file."""
    found = config(
        "actor_rollout_ref:\n  model: {path: Qwen/Qwen3-8B}\n  actor: {use_dynamic_bsz: true, ppo_max_token_len_per_gpu: 8192}\n"
    )
    assert (found.format, found.get("batch.sequence_length"), found.get("batch.micro_batch_size")) == ("verl", 8192, 1)


def test_the_newer_trainer_counts_tokens() -> None:
    """Its micro-batch is a row of so many tokens."""
    found = command("torchrun --nproc_per_node=2 -m verl.trainer.sft_trainer model.path=Qwen/Qwen3-8B data.max_token_len_per_gpu=4096")
    assert (found.get("batch.micro_batch_size"), found.get("batch.sequence_length")) == (1, 4096)


@pytest.mark.parametrize(
    "module",
    [
        "verl.trainer.main_ppo",
        "verl.experimental.one_step_off_policy.main_ppo",
        "verl.experimental.fully_async_policy.fully_async_main",
        "recipe.dapo.main_dapo",
    ],
)
def test_every_entry_point(module: str) -> None:
    """By its last name, wherever it lies."""
    found = command(f"python3 -m {module} actor_rollout_ref.model.path=Qwen/Qwen3-8B trainer.n_gpus_per_node=4")
    assert (found.format, found.get("parallelism.world_size")) == ("verl", 4)


def test_null_takes_a_setting_back() -> None:
    """It is no number that cannot be read."""
    actor = "actor_rollout_ref.actor"
    found = command(f"{BASE} {actor}.strategy=megatron {actor}.megatron.virtual_pipeline_model_parallel_size=null")
    assert found.warnings == []
    assert found.get("parallelism.virtual_pipeline") is None


@pytest.mark.parametrize(("share", "want", "unread"), [("1.0", "cpu", 0), ("0.5", None, 1)])
def test_megatrons_optimizer_on_the_host(share: str, want: str | None, unread: int) -> None:
    """All of it, or a part that no field says."""
    inner = "+actor_rollout_ref.actor.optim.override_optimizer_config"
    found = command(
        f"{BASE} algorithm.adv_estimator=grpo actor_rollout_ref.actor.strategy=megatron"
        f" {inner}.optimizer_cpu_offload=True {inner}.optimizer_offload_fraction={share}"
    )
    assert found.get("offload.optimizer") == want
    assert len(found.unread) == unread


def test_buffers_of_an_exchange_of_tokens_are_unread() -> None:
    """DeepEP's."""
    core = "+actor_rollout_ref.actor.megatron.override_transformer_config"
    found = command(f"{BASE} algorithm.adv_estimator=grpo actor_rollout_ref.actor.strategy=megatron {core}.moe_enable_deepep=True")
    assert len(found.unread) == 1
