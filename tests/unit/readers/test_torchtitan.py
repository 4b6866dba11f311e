"""torchtitan: what its settings come to, by their interactions."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.readers.fuzz import launch_of_words, read_soundly, seconds, settings_over
from tests.unit.readers.limits import SECONDS
from tests.unit.readers.words import document, launch_of, launch_of_file

from peakgate.readers.files import GivenFiles
from peakgate.readers.launch import Launch
from peakgate.readers.settings import Settings
from peakgate.readers.torchtitan import Torchtitan
from peakgate.readers.torchtitan_configs import CONFIGS
from peakgate.readers.torchtitan_models import FLAVORS, sizes_of
from peakgate.readers.torchtitan_pipeline import split_of
from peakgate.readers.torchtitan_settings import RENAMED, ROWS

TRAIN = "torchrun --nproc_per_node 8 -m torchtitan.train --job.config_file run.toml"
FILE = '[model]\nname = "llama3"\nflavor = "8B"\n[training]\nseq_len = 8192\nlocal_batch_size = 4\n'


def read(flags: str = "", text: str = FILE, command: str = TRAIN) -> dict[str, object]:
    """The document of a launch."""
    return document(Torchtitan().read(launch_of(f"{command} {flags}", GivenFiles({"run.toml": text}))))


def unread(flags: str, text: str = FILE) -> list[str]:
    """What no field says."""
    return Torchtitan().read(launch_of(f"{TRAIN} {flags}", GivenFiles({"run.toml": text}))).unread


@pytest.mark.parametrize(
    ("flags", "want"),
    [
        ("--activation_checkpoint.mode=full", ("full", None)),
        ("--activation_checkpoint.mode none", ("none", None)),
        ("--activation_checkpoint.selective_ac_option op", ("selective", None)),
        ("--activation_checkpoint.selective_ac_option 1", ("full", None)),
        ("--activation_checkpoint.selective_ac_option 4", ("full", 8)),
        ("--activation_checkpoint.selective_ac_option 2 --parallelism.pipeline_parallel_degree 4", ("full", 4)),
    ],
)
def test_every_nth_layer_is_so_many_layers_of_a_stage(flags: str, want: tuple[str, int | None]) -> None:
    """`op` is the list of operations, a number rebuilds every n-th layer whole; without a word that is every second one."""
    found = read(flags)
    assert (found["checkpointing.mode"], found.get("checkpointing.layers")) == want


@pytest.mark.parametrize(
    ("flags", "want"),
    [
        ("", ("fsdp", None, "fsdp-bf16")),
        ("--parallelism.data_parallel_shard_degree 8", ("fsdp", 8, "fsdp-bf16")),
        ("--parallelism.data_parallel_shard_degree -1 --parallelism.data_parallel_replicate_degree 2", ("hsdp", 4, "fsdp-bf16")),
        ("--parallelism.data_parallel_shard_degree 1 --parallelism.data_parallel_replicate_degree 8", ("ddp", None, "amp-bf16")),
        ("--parallelism.tensor_parallel_degree 8", ("none", None, "fp32")),
        ("--parallelism.context_parallel_degree 8 --parallelism.data_parallel_shard_degree 1", ("fsdp", 8, "fsdp-bf16")),
    ],
)
def test_degrees_decide_what_is_sharded_and_who_mixes_formats(flags: str, want: tuple[object, object, object]) -> None:
    """FSDP shards over the data and the context degree; without it autocast mixes formats, and beside tensor parallelism nothing does."""
    found = read(flags)
    assert (found.get("parallelism.sharding"), found.get("parallelism.shard_degree"), found.get("precision.recipe")) == want


def test_degrees_that_do_not_come_to_the_launch_are_a_warning() -> None:
    """Both numbers are told."""
    reading = Torchtitan().read(launch_of(f"{TRAIN} --parallelism.data_parallel_shard_degree 4", GivenFiles({"run.toml": FILE})))
    assert any("4 GPUs" in each and "8" in each for each in reading.warnings)


@pytest.mark.parametrize(
    ("flags", "want"),
    [
        ("--training.global_batch_size 64", (4, 2)),
        ("--training.global_batch_size 64 --parallelism.tensor_parallel_degree 2", (4, 4)),
        ("--parallelism.pipeline_parallel_degree 2", (1, 4)),
        (
            "--parallelism.pipeline_parallel_degree 2 --training.global_batch_size 32 --parallelism.pipeline_parallel_microbatch_size 2",
            (2, 4),
        ),
        ("--training.num_tokens_per_microbatch_per_dp_rank 16384", (2, None)),
        ("--training.num_tokens_per_microbatch_per_dp_rank 16384 --training.num_tokens_per_train_step 262144", (2, 2)),
    ],
)
def test_the_global_batch_is_shared_among_data_ranks_and_micro_batches(flags: str, want: tuple[int, int | None]) -> None:
    """Steps = global / (sequences × data degree), times the micro-batches of a pipeline."""
    found = read(flags)
    assert (found["batch.micro_batch_size"], found.get("batch.gradient_accumulation_steps")) == want


def test_a_global_batch_needs_the_number_of_gpus() -> None:
    """A file alone does not say it: the accumulation is left out, and that is told."""
    reading = Torchtitan().read(launch_of_file("run.toml", FILE + "global_batch_size = 64\n"))
    assert "batch.gradient_accumulation_steps" not in document(reading)
    assert any("number of GPUs" in each for each in reading.warnings)


@pytest.mark.parametrize(
    ("layers", "stages", "weights", "want"),
    [(32, 4, [1, 1], [8, 9, 8, 7]), (32, 2, [1, 1], [16, 16]), (30, 4, [1, 1], [7, 8, 8, 7]), (8, 4, [0, 0], [2, 2, 2, 2])],
)
def test_embedding_and_head_count_as_layers_of_a_stage(layers: int, stages: int, weights: list[int], want: list[int]) -> None:
    """generate_llm_fqn_per_model_part: what is over goes to the first stages, then the ends give theirs up."""
    assert split_of(layers, stages, weights) == want
    assert sum(want) == layers


@pytest.mark.parametrize(
    ("flags", "want"),
    [
        ("--compile.enable", (True, "0.2")),
        ("--training.compile", (True, "0.1")),
        ("--compile.no-enable", (False, "0.2")),
        ("--compile.enable --compile.components model loss", (True, "0.2")),
    ],
)
def test_compilation_and_the_age_of_its_names(flags: str, want: tuple[bool, str]) -> None:
    """training.compile is the older name."""
    found = read(flags)
    assert (found["framework.compile"], found["framework.version"]) == want


@pytest.mark.parametrize(
    ("flags", "word"),
    [
        ("--compile.enable --compile.components loss", "layers are not"),
        ("--model.converters quantize.grouped_mm.float8", "experts in 8 bits"),
        ("--model.converters lora", "converter lora"),
        ("--model.converters float8 --quantize.linear.float8.recipe_name rowwise", "each row"),
        ("--optimizer.name DistShampoo", "DistShampoo"),
        ("--model.flavor 9B", "9B"),
        ("--fault_tolerance.enable", "torchft"),
        ("--parallelism.pipeline_parallel_degree 2 --parallelism.pipeline_parallel_schedule ZBVZeroBubble", "ZBVZeroBubble"),
        ("--module graph_trainer.llama3 --config llama3_8b", "graph_trainer"),
        ("--module mine --config unknown", "unknown"),
    ],
)
def test_what_has_no_field_is_told(flags: str, word: str) -> None:
    """Such a launch is undecided, never a silent other one."""
    assert any(word in each for each in unread(flags)), unread(flags)


def test_sections_of_quantisation_mean_nothing_without_a_converter() -> None:
    """Every stock file has them."""
    found = read("--quantize.linear.float8.enable_fsdp_float8_all_gather")
    assert "precision.compute" not in found
    assert read("--quantize.linear.float8.enable_fsdp_float8_all_gather --model.converters float8")["precision.fp8.param_gather"] is True


def test_logits_stay_whole_when_loss_parallel_is_off() -> None:
    """Tensor parallel ranks else keep a part."""
    assert read("--parallelism.tensor_parallel_degree 2")["loss.implementation"] == "vocab-parallel"
    assert read("--parallelism.tensor_parallel_degree 2 --parallelism.disable_loss_parallel")["loss.implementation"] == "full"


def test_a_dry_run_is_no_launch() -> None:
    """run_train.sh has a branch for it before the one that trains."""
    assert Torchtitan().recognises(launch_of(TRAIN))
    assert not Torchtitan().recognises(launch_of(f"{TRAIN} --comm.mode=fake_backend"))
    assert not Torchtitan().recognises(launch_of(f"{TRAIN} --comm.mode="))


def test_tables_agree() -> None:
    """Every config of the table names a flavor of the other one, variants of a flavor have its sizes."""
    for pairs in CONFIGS.values():
        said = dict(pair.split("=", 1) for pair in pairs)
        assert (said["model.name"], said["model.flavor"].lower()) in FLAVORS
    assert sizes_of("llama3", "8B_flex") == sizes_of("llama3", "8B")
    assert sizes_of("llama4", "17bx16e_irope") == sizes_of("llama4", "17bx16e")


NAMES = {row.key for row in ROWS} | set(RENAMED) | set(RENAMED.values()) | {
    "model.name", "model.flavor", "model.converters", "compile.components", "training.seq_len", "training.global_batch_size",
    "training.num_tokens_per_microbatch_per_dp_rank", "parallelism.pipeline_parallel_schedule",
    "parallelism.pipeline_parallel_layers_per_stage",
    "parallelism.pipeline_parallel_degree", "parallelism.data_parallel_shard_degree", "activation_checkpoint.mode",
    "activation_checkpoint.selective_ac_option", "training.dtype", "optimizer.name", "optimizer.fused",
}  # fmt: skip


@given(settings_over(NAMES), st.lists(st.text(max_size=30), max_size=6))
def test_nothing_stumbles(settings: Settings, words: list[str]) -> None:
    """Any value under any name, any words."""
    read_soundly(Torchtitan(), Launch(config=settings, config_file="x.toml"))
    read_soundly(Torchtitan(), launch_of_words(["torchtitan.train", *words]))


@given(st.text(max_size=200))
def test_a_config_in_python_of_any_kind(text: str) -> None:
    """It is read, never run."""
    files = {"m/config_registry.py": f"def f():\n    return {text}"}
    read_soundly(Torchtitan(), launch_of_words(["torchtitan.train", "--module", "m", "--config", "f"], files))


@pytest.mark.parametrize(
    "body",
    [
        "    config = f()\n    return config",
        "    x.training.steps = " + "*".join(["2"] * 3000),
        "    x.training.steps = " + "-" * 3000 + "1",
        "".join(f"    a{index} = f()\n" for index in range(3000)),
        "    " + "[" * 3000,
        "    x.training.seq_len = 0x" + "f" * 9000,
    ],
)
def test_a_config_in_python_made_to_stumble(body: str) -> None:
    """Functions that call themselves, values without end."""
    begin = time.process_time()
    Torchtitan().read(
        launch_of_words(["torchtitan.train", "--module", "m", "--config", "f"], {"m/config_registry.py": f"def f():\n{body}\n"})
    )
    assert time.process_time() - begin < SECONDS


def test_a_command_without_end_is_read_in_seconds() -> None:
    """Words beyond a limit are not looked at."""
    words = ["torchtitan.train"] + [f"--training.x{index}={index}" for index in range(200_000)]
    launch = launch_of_words(words)
    assert seconds(Torchtitan(), launch) < 2
