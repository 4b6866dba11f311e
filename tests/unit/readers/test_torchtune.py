"""torchtune: recipes, built-in configs, overrides and components."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.readers.fuzz import launch_of_words, read_soundly, seconds, settings_over
from tests.unit.readers.words import document, launch_of, launch_of_file

from peakgate.readers.files import GivenFiles
from peakgate.readers.launch import Launch
from peakgate.readers.settings import Settings
from peakgate.readers.torchtune import Torchtune
from peakgate.readers.torchtune_configs import CONFIGS, config_of
from peakgate.readers.torchtune_models import BLOCKS, PRESETS, feed_forward, plain
from peakgate.readers.torchtune_settings import ADAPTERS, ROWS

LORA = "tune run lora_finetune_single_device --config llama3_1/8B_lora_single_device"
FULL = "tune run --nproc_per_node 4 full_finetune_distributed --config llama3_2/3B_full"


def read(command: str) -> dict[str, object]:
    """The document of a launch."""
    return document(Torchtune().read(launch_of(command)))


@pytest.mark.parametrize(
    ("override", "path", "want"),
    [
        ("optimizer=bitsandbytes.optim.AdamW8bit", "optimizer.name", "adamw-8bit"),
        ("optimizer._component_=torchao.optim.AdamW8bit", "optimizer.name", "adamw-8bit"),
        ("optimizer.fused=False", "optimizer.implementation", "foreach"),
        ("optimizer.fused=False optimizer.foreach=False", "optimizer.implementation", "for-loop"),
        ("optimizer=torchao.prototype.low_bit_optim.CPUOffloadOptimizer", "offload.optimizer", "cpu"),
        ("loss=torch.nn.CrossEntropyLoss", "loss.implementation", "full"),
        ("model=torchtune.models.llama3_1.qlora_llama3_1_8b", "lora.base_dtype", "nf4"),
        ("model.quantize_base=True", "lora.base_dtype", "nf4"),
        ("model.use_dora=True", "lora.method", "dora"),
        ("model.apply_lora_to_mlp=False", "lora.targets", ["q_proj", "v_proj", "output_proj"]),
        ("enable_activation_checkpointing=False", "checkpointing.mode", "none"),
        ("enable_activation_offloading=True", "offload.activations", "cpu"),
        ("dataset.packed=True tokenizer.max_seq_len=4096", "batch.sequence_length_is", "exact"),
        ("tokenizer.max_seq_len=4096", "batch.sequence_length_is", "cap"),
        ("tokenizer.max_seq_len=None", "batch.sequence_length", None),
        ("compile.model=True", "framework.compile", True),
        ("run_val_every_n_steps=10 dataset_val.split=x batch_size_val=3", "evaluate.micro_batch_size", None),
        ("~model.lora_rank", "lora.rank", 8),
    ],
)
def test_overrides(override: str, path: str, want: object) -> None:
    """A key that names a component takes another one; None and ~ take a key away."""
    assert read(f"{LORA} {override}").get(path) == want


@pytest.mark.parametrize(
    ("override", "word"),
    [
        ("optimizer=torchao.optim.AdamW4bit", "AdamW4bit"),
        ("loss=my.Loss", "my.Loss"),
        ("loss=torchtune.modules.loss.CEWithChunkedOutputLoss loss.num_output_chunks=4", "instead of 8"),
        ("model=my.own.model", "my.own.model"),
        ("compile.model=True compile.loss=False", "not compiled together"),
        ("custom_sharded_layers=[tok_embeddings]", "units of their own"),
        ("ac_mode=selective ac_option=2 enable_activation_checkpointing=False", "selective checkpointing"),
    ],
)
def test_what_has_no_field_is_told(override: str, word: str) -> None:
    """Such a launch is undecided."""
    found = Torchtune().read(launch_of(f"{FULL} {override}")).unread
    assert any(word in each for each in found), found


@pytest.mark.parametrize(
    ("recipe", "config", "method", "word"),
    [
        ("full_dpo_distributed", "llama3_1/8B_full_dpo", "dpo", ""),
        ("ppo_full_finetune_single_device", "mistral/7B_full_ppo_low_memory", "ppo", "value and reward"),
        ("dev/grpo_full_finetune_distributed", "dev/3B_full_grpo", "grpo", "generation"),
        ("knowledge_distillation_distributed", "qwen2/1.5_to_0.5B_KD_lora_distributed", "distill", ""),
        ("qat_lora_finetune_distributed", "llama3/8B_qat_lora", "sft", "quantisation-aware"),
        ("lora_finetune_distributed", "llama3_2_vision/11B_lora", "sft", "pictures"),
    ],
)
def test_recipes_of_other_methods_are_never_a_plain_finetune(recipe: str, config: str, method: str, word: str) -> None:
    """The method is named, and what it holds beside the model is said or told."""
    reading = Torchtune().read(launch_of(f"tune run {recipe} --config {config}"))
    assert document(reading)["method.name"] == method
    assert not word or any(word in each for each in reading.unread)


def test_a_recipe_of_ones_own_is_known_by_its_loss_and_its_config() -> None:
    """A word inside another one is none."""
    own = "tune run my_support_recipe.py --config llama3_1/8B_lora_dpo"
    assert read(own)["method.name"] == "dpo"
    assert read("tune run my_support_recipe.py --config llama3_2/3B_full")["method.name"] == "sft"
    assert read("tune run mine.py --config llama3_2/3B_full loss=torchtune.rlhf.loss.DPOLoss")["method.name"] == "dpo"


def test_degrees_of_the_mesh() -> None:
    """Replicas beside shards are HSDP; a single rank shards nothing."""
    found = read(f"{FULL} data_parallel_replicate_dim=2 data_parallel_shard_dim=2 context_parallel_dim=1")
    assert (found["parallelism.sharding"], found["parallelism.shard_degree"]) == ("hsdp", 2)
    alone = read("tune run --nproc_per_node 1 full_finetune_distributed --config llama3_2/3B_full")
    assert alone["parallelism.sharding"] == "none"


def test_a_local_file_wins_over_a_built_in_name() -> None:
    """`tune cp` gives files the names of configs."""
    launch = launch_of("tune run full_finetune_distributed --config llama3_2/3B_full", GivenFiles({"llama3_2/3B_full": "batch_size: 7\n"}))
    assert document(Torchtune().read(launch))["batch.micro_batch_size"] == 7


def test_a_config_nobody_knows_is_told() -> None:
    """Neither a name nor a file."""
    assert Torchtune().read(launch_of("tune run full_finetune_distributed --config mine.yaml")).unread


def test_a_file_is_known_by_its_components() -> None:
    """Without a command."""
    launch = launch_of_file("x.yaml", "model:\n  _component_: torchtune.models.phi4.phi4_14b\nbatch_size: 2\n")
    assert Torchtune().recognises(launch)
    assert document(Torchtune().read(launch))["model.preset"] == "microsoft/phi-4"
    assert not Torchtune().recognises(launch_of_file("x.yaml", "batch_size: 2\n"))


def test_built_in_configs_name_known_models() -> None:
    """Every row's builder is in the table, every word of a row is understood."""
    assert len(CONFIGS) > 150
    for name, pairs in CONFIGS.items():
        said = dict(pair.split("=", 1) for pair in pairs)
        component = said.get("model._component_") or said["policy_model._component_"]
        assert plain(component) in PRESETS or plain(component) in BLOCKS, name
        assert "batch_size" in said or "grpo" in name or "async" in name, name
    assert config_of("nobody/knows") is None


@pytest.mark.parametrize(("width", "want"), [(4096, 11008), (2048, 5632), (5120, 13824)])
def test_the_width_of_a_feed_forward_part(width: int, want: int) -> None:
    """Llama 2's and TinyLlama's published widths."""
    assert feed_forward(width) == want


NAMES = {row.key for row in (*ROWS, *ADAPTERS)} | {
    "model._component_", "model.embed_dim", "model.num_layers", "model.lora_attn_modules", "model.quantize_base", "optimizer._component_",
    "optimizer.fused", "optimizer.momentum", "loss._component_", "loss.num_output_chunks", "compile", "compile.model", "compile.loss",
    "dataset.packed", "tokenizer.max_seq_len", "ac_mode", "ac_option", "enable_activation_checkpointing", "run_val_every_n_steps",
    "dataset_val.split", "batch_size_val", "data_parallel_shard_dim", "data_parallel_replicate_dim", "custom_sharded_layers",
    "quantizer._component_", "enable_fp8_training", "teacher_model._component_", "kd_loss._component_",
}  # fmt: skip


@given(settings_over(NAMES), st.lists(st.text(max_size=30), max_size=6))
def test_nothing_stumbles(settings: Settings, words: list[str]) -> None:
    """Any value under any name, any words."""
    read_soundly(Torchtune(), Launch(config=settings, config_file="x.yaml"))
    launch = launch_of_words(["full_finetune_distributed", "--config", "llama2/7B_full", *words])
    read_soundly(Torchtune(), launch)


def test_references_that_go_round_end() -> None:
    """`${a}` that means itself."""
    text = "model:\n  _component_: torchtune.models.llama2.llama2_7b\nbatch_size: ${b}\nb: ${batch_size}\n"
    reading = Torchtune().read(launch_of_file("x.yaml", text))
    assert reading.get("batch.micro_batch_size") is None


def test_a_command_without_end_is_read_in_seconds() -> None:
    """Overrides and removals."""
    words = [f"~a{index}" if index % 2 else f"b.x{index}={index}" for index in range(200_000)]
    launch = launch_of_words(["full_finetune_distributed.py", "--config", "llama2/7B_full", *words])
    assert seconds(Torchtune(), launch) < 2


@pytest.mark.parametrize(
    "rest", ["tasks: [truthfulqa_mc2]\n", "prompt:\n  user: hello\n", "max_new_tokens: 300\n", "quantizer:\n  groupsize: 256\n"]
)
def test_a_file_that_trains_nothing_is_not_known(rest: str) -> None:
    """Evaluation, generation and quantisation, unless there is an optimizer."""
    model = "model:\n  _component_: torchtune.models.phi4.phi4_14b\nbatch_size: 2\n"
    assert not Torchtune().recognises(launch_of_file("x.yaml", model + rest))
    assert Torchtune().recognises(launch_of_file("x.yaml", f"{model}{rest}optimizer:\n  _component_: torch.optim.AdamW\n"))


@pytest.mark.parametrize("recipe", ["generate", "eleuther_eval", "quantize", "dev/generate_v2"])
def test_a_recipe_that_trains_nothing_is_not_known(recipe: str) -> None:
    """By its name."""
    assert not Torchtune().recognises(launch_of(f"tune run {recipe} --config generation"))


def test_a_policy_is_a_model() -> None:
    """Configs of PPO name the trained model so."""
    launch = launch_of_file("ppo.yaml", "policy_model:\n  _component_: torchtune.models.mistral.mistral_7b\noptimizer:\n  lr: 1\n")
    assert Torchtune().recognises(launch)
    assert document(Torchtune().read(launch))["model.preset"] == "mistralai/Mistral-7B-v0.1"
