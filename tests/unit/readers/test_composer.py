"""LLM Foundry: strategies, precision and models."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.readers.fuzz import launch_of_words, read_soundly, settings_over
from tests.unit.readers.words import document, launch_of, launch_of_file

from peakgate.readers.composer import ROWS, Composer
from peakgate.readers.composer_models import SIZES
from peakgate.readers.files import GivenFiles
from peakgate.readers.launch import Launch
from peakgate.readers.read import UnreadableError, read_command
from peakgate.readers.settings import Settings

FILE = (
    "max_seq_len: 2048\nmodel:\n  name: mpt_causal_lm\nprecision: amp_bf16\n"
    "device_train_microbatch_size: 2\nfsdp_config:\n  mixed_precision: PURE\n"
)


def read(overrides: str, gpus: int = 8) -> dict[str, object]:
    """The document of a launch."""
    return document(Composer().read(launch_of(f"composer -n {gpus} train.py run.yaml {overrides}", GivenFiles({"run.yaml": FILE}))))


@pytest.mark.parametrize(
    ("overrides", "path", "want"),
    [
        ("", "precision.recipe", "fsdp-bf16"),
        ("fsdp_config.mixed_precision=FULL", "precision.recipe", "amp-bf16"),
        ("fsdp_config.sharding_strategy=NO_SHARD", "parallelism.sharding", "ddp"),
        ("fsdp_config.sharding_strategy=HYBRID_SHARD", "parallelism.sharding", "hsdp"),
        ("fsdp_config.activation_checkpointing=true", "checkpointing.reentrant", True),
        ("fsdp_config.activation_checkpointing_reentrant=false", "checkpointing.reentrant", False),
        ("fsdp_config.activation_cpu_offload=true", "offload.activations", "cpu"),
        ("global_train_batch_size=64", "batch.gradient_accumulation_steps", 4),
        ("model.attn_config.attn_type=multiquery_attention", "model.transformer.kv_heads", 1),
        ("model.expansion_ratio=2", "model.transformer.ffn_hidden_size", 4096),
        ("model.attn_config.alibi=true", "model.transformer.max_positions", None),
        ("device_train_microbatch_size=auto", "batch.micro_batch_size", None),
    ],
)
def test_what_a_key_means(overrides: str, path: str, want: object) -> None:
    """Each by itself."""
    assert read(overrides).get(path) == want


def test_one_gpu_drops_the_config_of_fsdp() -> None:
    """Nothing is sharded, nothing rebuilt, and autocast casts."""
    found = read("fsdp_config.activation_checkpointing=true", gpus=1)
    assert (found["parallelism.sharding"], found["checkpointing.mode"], found["precision.recipe"]) == ("none", "none", "amp-bf16")


@pytest.mark.parametrize(
    ("overrides", "word"),
    [
        ("model.name=my_model", "my_model"),
        ("model.ffn_config.ffn_type=mb_moe", "mb_moe"),
        ("model.attn_config.rope=true", "rotated"),
        ("optimizer.name=decoupled_lionw_8b", "8b"),
        ("precision=fp64", "fp64"),
        ("model.activation_checkpointing_target=block fsdp_config.activation_checkpointing=true", "named parts"),
    ],
)
def test_what_has_no_field_is_told(overrides: str, word: str) -> None:
    """Such a launch is undecided."""
    launch = launch_of(f"composer -n 8 train.py run.yaml {overrides}", GivenFiles({"run.yaml": FILE}))
    assert any(word in each for each in Composer().read(launch).unread)


def test_what_is_recognised() -> None:
    """Its files and commands, and no others."""
    assert Composer().recognises(launch_of_file("x.yaml", FILE))
    assert Composer().recognises(launch_of("llmfoundry train run.yaml"))
    assert not Composer().recognises(launch_of("python train.py other.yaml", GivenFiles({"other.yaml": "a: 1\n"})))
    assert not Composer().recognises(launch_of_file("x.yaml", "model:\n  name: other\n"))


NAMES = {row.key for row in ROWS} | {f"model.{row.key}" for row in SIZES} | {
    "model.name", "model.expansion_ratio", "precision", "global_train_batch_size", "fsdp_config.sharding_strategy", "optimizer.name",
    "fsdp_config.activation_checkpointing", "fsdp_config.mixed_precision", "train_loader.name", "train_loader.dataset.packing_ratio",
    "compile_config", "model.peft_config.peft_type", "model.peft_config.target_modules", "model.pretrained_model_name_or_path",
}  # fmt: skip


@given(settings_over(NAMES), st.lists(st.text(max_size=30), max_size=6))
def test_nothing_stumbles(settings: Settings, words: list[str]) -> None:
    """Any value under any name, any words."""
    read_soundly(Composer(), Launch(config=settings, config_file="x.yaml"))
    read_soundly(Composer(), launch_of_words(["train.py", "x.yaml", *words]))
    Composer().recognises(launch_of_words(["llmfoundry", *words]))


@pytest.mark.parametrize(("line", "want"), [("", True), ("expandable_segments: false\n", False), ("expandable_segments: true\n", True)])
def test_the_allocator_grows_its_segments(line: str, want: bool) -> None:
    """Unless it is told otherwise."""
    assert document(Composer().read(launch_of_file("x.yaml", FILE + line)))["framework.expandable_segments"] is want


def test_a_benchmark_of_generation_is_not_known() -> None:
    """It has lengths of inputs and outputs."""
    assert not Composer().recognises(launch_of_file("x.yaml", f"{FILE}input_lengths: [128]\noutput_lengths: [8]\n"))


@pytest.mark.parametrize(("kind", "want"), [("a100_80gb", "a100-80gb"), ("h100_80gb", "h100-80gb"), ("a100", None), ("mine", None)])
def test_the_card_of_a_run(kind: str, want: str | None) -> None:
    """Where its name is that of one card."""
    inner = "\n".join(f"  {line}" for line in FILE.splitlines())
    found = document(Composer().read(launch_of_file("x.yaml", f"compute:\n  gpus: 8\n  gpu_type: {kind}\nparameters:\n{inner}\n")))
    assert found.get("gpu.type") == want
    assert found["parallelism.world_size"] == 8


def test_a_file_inside_a_container_is_unread() -> None:
    """The script's path says what it is."""
    launch = launch_of("composer -n 8 /llm-foundry/scripts/train/train.py /llm-foundry/mpt-7b.yaml max_seq_len=2048", GivenFiles({}))
    assert Composer().recognises(launch)
    found = Composer().read(launch)
    assert document(found)["batch.sequence_length"] == 2048
    assert len(found.unread) == 1


def test_the_scripts_earlier_name() -> None:
    """`main.py`, where its file is LLM Foundry's."""
    file = "max_seq_len: 2048\nmodel: {name: mpt_causal_lm, d_model: 64, n_heads: 2, n_layers: 2, vocab_size: 100}\n"
    found = read_command("composer -n 2 main.py y.yaml", GivenFiles({"y.yaml": file}))
    assert (found.format, found.get("batch.sequence_length")) == ("composer", 2048)
    with pytest.raises(UnreadableError):
        read_command("composer -n 2 main.py y.yaml", GivenFiles({"y.yaml": "a: 1\n"}))
