"""Megatron-Bridge: recipes, YAML and words over ConfigContainer, adapters, NeMo 2's paths."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.readers.launched import a_config, a_launch, launch_of, read, values

from peakgate.readers.megatron import MegatronReader
from peakgate.readers.megatron_bridge import MegatronBridgeReader
from peakgate.readers.megatron_bridge_recipes import recipe_of
from peakgate.readers.place import DEFAULT

RUN = "scripts/training/run_recipe.py"


def fields(words: str, world: int | None = None) -> dict[str, object]:
    """The fields that words behind run_recipe.py give."""
    return values(read(MegatronBridgeReader(), a_launch(f"{RUN} {words}", world=world)))


@pytest.mark.parametrize(
    "name",
    ["llama3_8b_pretrain", "llama3_8b_pretrain_config", "llama3_8b_pretrain_2gpu_h100_bf16_config", "LLAMA3_8B_PRETRAIN"],
)
def test_a_recipe_has_several_names(name: str) -> None:
    """Short and full, with and without _config."""
    recipe = recipe_of(name)
    assert recipe is not None
    assert (recipe.model, recipe.task, recipe.settings["cp"]) == ("meta-llama/Meta-Llama-3-8B", "pretrain", "2")


def test_what_is_stated_wins_over_the_recipe() -> None:
    """The recipe's settings are defaults, flags and words are not."""
    reading = read(MegatronBridgeReader(), a_launch(f"{RUN} --recipe llama3_8b_pretrain_config -cp 1 train.micro_batch_size=4", world=8))
    assert values(reading)["parallelism.context"] == 1
    assert values(reading)["batch.micro_batch_size"] == 4
    assert reading.fields["batch.sequence_length"].place.kind == DEFAULT
    assert reading.warnings == []


@pytest.mark.parametrize(
    ("words", "want"),
    [
        ("mixed_precision=bf16_mixed", {"recipe": "megatron-bf16"}),
        ("mixed_precision=fp16_mixed", {"recipe": "megatron-fp16", "gradients": "float16"}),
        ("mixed_precision=bf16_mixed mixed_precision.grad_reduce_in_fp32=false", {"recipe": "megatron-bf16", "gradients": "bfloat16"}),
        (
            "mixed_precision=bf16_with_mxfp8_mixed",
            {"recipe": "megatron-bf16", "compute": "float8", "fp8.recipe": "mxfp8", "fp8.param_gather": True},
        ),
        (
            "mixed_precision=bf16_with_fp8_subchannel_scaling_mixed",
            {"recipe": "megatron-bf16", "compute": "float8", "fp8.recipe": "blockwise"},
        ),
    ],
)
def test_mixed_precision_by_name(words: str, want: dict[str, object]) -> None:
    """mixed_precision.py: each recipe's 8-bit settings, and gradients."""
    found = {path.removeprefix("precision."): value for path, value in fields(f"--recipe llama3_8b_sft_config {words}").items()}
    assert {
        path: value for path, value in found.items() if path in ("recipe", "gradients", "compute", "fp8.recipe", "fp8.param_gather")
    } == want


@pytest.mark.parametrize(
    ("words", "want"),
    [
        ("", {"method": "lora", "rank": 32, "targets": ["all-linear"], "adapter_dtype": "bfloat16"}),
        (
            "peft.dim=8 peft.target_modules=[linear_qkv]",
            {"method": "lora", "rank": 8, "targets": ["qkv_proj"], "adapter_dtype": "bfloat16"},
        ),
        ("--mode dora", {"method": "dora", "rank": 32, "targets": ["all-linear"], "adapter_dtype": "bfloat16"}),
    ],
)
def test_adapters(words: str, want: dict[str, object]) -> None:
    """By the recipe's task or the mode, Megatron's joined matrices by their names."""
    found = fields(f"--recipe llama3_8b_peft_config {words}")
    assert {path.removeprefix("lora."): value for path, value in found.items() if path.startswith("lora.")} == want
    assert found["method.name"] == "sft"


def test_an_unknown_recipe_is_said() -> None:
    """Its model and settings are not guessed."""
    reading = read(MegatronBridgeReader(), a_launch(f"{RUN} --recipe my_model_pretrain_config train.micro_batch_size=1", world=8))
    assert "my_model_pretrain_config" in reading.unread[0]
    assert "model.preset" not in reading.fields


def test_a_presets_sizes_cannot_be_changed() -> None:
    """Fewer layers than the preset's have no words beside it."""
    reading = read(MegatronBridgeReader(), a_launch(f"{RUN} --recipe llama3_8b_pretrain_config model.num_layers=4"))
    assert any("num_layers" in sentence for sentence in reading.unread)


def test_a_config_describes_a_model() -> None:
    """Sizes without a recipe are a transformer."""
    config = """
model: {num_layers: 4, hidden_size: 256, num_attention_heads: 8, num_query_groups: 2, gated_linear_unit: true,
  position_embedding_type: rope,
  share_embeddings_and_output_weights: false, add_bias_linear: false}
train: {micro_batch_size: 2, global_batch_size: 8, train_iters: 10}
dataset: {seq_length: 512}
"""
    found = values(read(MegatronBridgeReader(), a_config(config)))
    assert (found["model.transformer.block"], found["model.transformer.kv_heads"]) == ("llama", 2)
    assert found["model.transformer.tied_embeddings"] is False
    assert found["batch.sequence_length"] == 512


def test_performance_scripts_name_a_recipe() -> None:
    """scripts/performance: family, model and task."""
    found = values(
        read(MegatronBridgeReader(), a_launch("performance/run_script.py -m llama -mr llama3_70b --task pretrain -tp 8", world=64))
    )
    assert (found["model.preset"], found["parallelism.tensor"]) == ("meta-llama/Meta-Llama-3-70B", 8)


def test_fine_tuning_without_packs_is_padded() -> None:
    """enable_offline_packing: false."""
    found = fields("--recipe llama3_8b_sft_config dataset.enable_offline_packing=false")
    assert (found["batch.packed"], found["batch.sequence_length_is"]) == (False, "cap")


def test_nemo_2_has_its_own_paths() -> None:
    """`nemo llm`: degrees of the strategy, batches of the data module; the factory's own settings are not known."""
    words = (
        "nemo llm pretrain --factory llama3_8b trainer.strategy.tensor_model_parallel_size=2 data.micro_batch_size=1 data.seq_length=4096"
    )
    found = values(read(MegatronBridgeReader(), a_launch(words, world=8)))
    assert (found["parallelism.tensor"], found["batch.micro_batch_size"], found["batch.sequence_length"]) == (2, 1, 4096)
    assert found["method.name"] == "pretrain"


def test_nemo_2_starts_its_processes_itself() -> None:
    """trainer.devices × trainer.num_nodes is the world, of which the accumulation follows."""
    words = (
        "nemo llm pretrain --factory llama3_8b trainer.num_nodes=2 trainer.devices=8 data.micro_batch_size=1 data.global_batch_size=128 "
        "trainer.strategy.tensor_model_parallel_size=2 trainer.strategy.context_parallel_size=4"
    )
    found = values(read(MegatronBridgeReader(), a_launch(words)))
    want = {"parallelism.world_size": 16, "node.gpus": 8, "batch.gradient_accumulation_steps": 64}
    assert {path: found.get(path) for path in want} == want


def test_nemo_2_fine_tunes_by_factories_of_its_own() -> None:
    """Adapters unless they are switched off; degrees of a recipe for pretraining are not taken, and what nobody says stays open."""
    words = "nemo llm finetune --factory llama31_70b trainer.num_nodes=4 trainer.devices=8"
    open_ones = read(MegatronBridgeReader(), a_launch(words))
    assert (open_ones.get("lora.method"), open_ones.get("batch.sequence_length")) == ("lora", 2048)
    assert (
        "the factory's own tensor_model_parallel_size, pipeline_model_parallel_size, peft.dim, peft.target_modules" in open_ones.unread[0]
    )
    degrees = "trainer.strategy.tensor_model_parallel_size=8 trainer.strategy.pipeline_model_parallel_size=4"
    whole = read(MegatronBridgeReader(), a_launch(f"{words} peft=none {degrees}"))
    assert (whole.unread, whole.get("lora.method"), whole.get("parallelism.context")) == ([], None, None)
    assert (whole.get("parallelism.virtual_pipeline"), whole.get("batch.gradient_accumulation_steps")) == (None, 128)


KEYS = st.sampled_from(
    [
        "model.num_layers",
        "model.hidden_size",
        "model.tensor_model_parallel_size",
        "train.micro_batch_size",
        "train.global_batch_size",
        "dataset.seq_length",
        "mixed_precision",
        "mixed_precision.fp8",
        "peft.dim",
        "peft.target_modules",
        "model.moe_layer_freq",
        "model.pipeline_model_parallel_layout",
        "ddp.use_distributed_optimizer",
        "optimizer.optimizer",
        "model.recompute_modules",
    ]
)


@given(st.lists(st.tuples(KEYS, st.text(max_size=30)), max_size=10), st.text(max_size=20))
def test_no_words_make_it_raise(pairs: list[tuple[str, str]], recipe: str) -> None:
    """Any value of any key, any recipe."""
    reading = MegatronBridgeReader().read(launch_of([RUN, "--recipe", recipe, *(f"{key}={value}" for key, value in pairs)], world=8))
    assert all(str(stated.place) for stated in reading.fields.values())


@pytest.mark.parametrize(
    ("words", "want"),
    [
        ("--recipe qwen3_8b_sft_config", 0),
        ("--recipe qwen3_8b_sft_config --step_func gpt_step", 0),
        ("--recipe qwen3_8b_sft_config --step_func vlm_step train.train_iters=5", 1),
        ("--recipe ministral3_3b_sft_config", 1),
    ],
)
def test_a_tower_in_front_of_the_model_is_unread(words: str, want: int) -> None:
    """By the step that is named, or the recipe's own."""
    reading = read(MegatronBridgeReader(), a_launch(f"{RUN} {words}", world=8))
    assert sum("tower" in each for each in reading.unread) == want


@pytest.mark.parametrize(
    ("flags", "want"),
    [
        ("", None),
        ("--compute_dtype bf16", None),
        ("--compute_dtype fp8_cs", "current"),
        ("-c fp8_mx", "mxfp8"),
        ("--compute_dtype fp8_sc", "blockwise"),
    ],
)
def test_formats_of_the_runner_of_performance(flags: str, want: str | None) -> None:
    """Its flag wins over the recipe, and Megatron's flags beside it do not make it Megatron-LM's."""
    launch = a_launch(
        f"scripts/performance/run_script.py --model_family_name llama --model_recipe_name llama3_70b --micro_batch_size 1 {flags}"
        " --tensor_model_parallel_size 4 --pipeline_model_parallel_size 2",
        world=64,
    )
    assert not MegatronReader().recognises(launch)
    reading = read(MegatronBridgeReader(), launch)
    found = values(reading)
    assert reading.warnings == []  # all layers compute in 8 bits here, the first and last as well
    assert found.get("precision.fp8.recipe") == want
    assert (found["parallelism.tensor"], found["model.preset"]) == (4, "meta-llama/Meta-Llama-3-70B")


def test_a_recipe_by_name_and_size() -> None:
    """As earlier releases call it."""
    words = "scripts/performance/run_script.py --model_name llama3 --model_size 70b --micro_batch_size 1 --tensor_model_parallel_size 4"
    assert values(read(MegatronBridgeReader(), a_launch(words, world=64)))["model.preset"] == "meta-llama/Meta-Llama-3-70B"
