"""LitGPT: verbs, ages, files and flags."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.readers.fuzz import launch_of_words, read_soundly, seconds, settings_over
from tests.unit.readers.words import document, launch_of, launch_of_file

from peakgate.readers.files import GivenFiles
from peakgate.readers.launch import Launch
from peakgate.readers.litgpt import ROWS, Litgpt
from peakgate.readers.litgpt_adapters import ADAPTED, ADAPTERS
from peakgate.readers.litgpt_models import name_of
from peakgate.readers.read import read_command, read_file
from peakgate.readers.settings import Settings

LORA = "litgpt finetune_lora microsoft/phi-2"


def read(command: str) -> dict[str, object]:
    """The document of a launch."""
    return document(Litgpt().read(launch_of(command)))


@pytest.mark.parametrize(
    ("command", "path", "want"),
    [
        (LORA, "precision.recipe", "amp-bf16"),
        (LORA, "batch.micro_batch_size", 1),
        (LORA, "batch.gradient_accumulation_steps", 16),
        (LORA, "lora.targets", ["q_proj", "v_proj"]),
        (LORA, "lora.dropout", 0.05),
        (f"{LORA} --precision 16-mixed", "precision.recipe", "amp-fp16"),
        (f"{LORA} --precision 16-true", "precision.parameters", "float16"),
        (f"{LORA} --quantize bnb.int8-training", "lora.base_dtype", "int8"),
        (f"{LORA} --devices 4", "checkpointing.mode", "full"),
        (f"{LORA} --devices 4", "framework.fsdp.version", 2),
        (f"{LORA} --devices 4 --num_nodes 2 --train.global_batch_size 64", "batch.gradient_accumulation_steps", 8),
        (f"{LORA} --optimizer bitsandbytes.optim.PagedAdamW8bit", "optimizer.name", "paged-adamw-8bit"),
        ("litgpt finetune microsoft/phi-2", "lora.rank", 8),
        ("litgpt finetune full --checkpoint_dir checkpoints/microsoft/phi-2", "framework.version", "0.3"),
        ("litgpt finetune lora --checkpoint_dir checkpoints/microsoft/phi-2", "batch.gradient_accumulation_steps", 16),
        ("litgpt finetune lora --checkpoint_dir checkpoints/microsoft/phi-2", "batch.micro_batch_size", 1),
        ("python finetune/lora.py --checkpoint_dir checkpoints/tiiuae/falcon-7b", "batch.micro_batch_size", 4),
        ("python finetune/full.py --checkpoint_dir checkpoints/tiiuae/falcon-7b", "batch.gradient_accumulation_steps", 64),
        ("python finetune/adapter_v2.py --checkpoint_dir checkpoints/tiiuae/falcon-7b", "batch.micro_batch_size", 2),
        ("python pretrain/tinyllama.py", "batch.gradient_accumulation_steps", 8),
        ("python pretrain/redpajama.py --devices 4", "batch.gradient_accumulation_steps", 20),
        ("python pretrain/redpajama.py", "framework.compile", False),
        ("litgpt pretrain pythia-14m", "parallelism.world_size", None),
        ("litgpt finetune_full microsoft/phi-2 --devices 2", "precision.recipe", "fsdp-bf16"),
        ("litgpt pretrain tiny-llama-1.1b --devices 4", "model.preset", "TinyLlama/TinyLlama_v1.1"),
        ("litgpt pretrain pythia-14m --devices auto", "parallelism.world_size", None),
        ("python finetune/full.py --checkpoint_dir checkpoints/tiiuae/falcon-7b", "framework.version", None),
        ("python -m litgpt.finetune.full --checkpoint_dir checkpoints/tiiuae/falcon-7b", "framework.version", "0.5.13"),
        ("litgpt finetune --repo_id microsoft/phi-2", "model.preset", "microsoft/phi-2"),
        ("python litgpt/finetune/lora.py --checkpoint_dir checkpoints/tiiuae/falcon-7b", "framework.version", "0.5.13"),
    ],
)
def test_what_a_launch_means(command: str, path: str, want: object) -> None:
    """Defaults of each verb and age, and what devices make of them."""
    assert read(command).get(path) == want


@pytest.mark.parametrize(
    ("flags", "word"),
    [
        ("--precision 64-true", "64-true"),
        ("--quantize gptq.int4", "gptq"),
        ("--optimizer grokadamw.GrokAdamW", "GrokAdamW"),
        ("--train.tie_embeddings true", "tied"),
    ],
)
def test_what_has_no_field_is_told(flags: str, word: str) -> None:
    """Such a launch is undecided."""
    assert any(word in each for each in Litgpt().read(launch_of(f"{LORA} {flags}")).unread)


def test_mixed_precision_over_a_quantised_base_is_refused() -> None:
    """Also when it is the default."""
    assert Litgpt().read(launch_of(f"{LORA} --quantize bnb.nf4")).warnings
    assert not Litgpt().read(launch_of(f"{LORA} --quantize bnb.nf4 --precision bf16-true")).warnings


def test_learned_prompts_are_told() -> None:
    """finetune_adapter trains neither all parameters nor LoRA."""
    for verb in ("finetune_adapter", "finetune_adapter_v2"):
        assert Litgpt().read(launch_of(f"litgpt {verb} microsoft/phi-2")).unread


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("checkpoints/meta-llama/Llama-2-7b-hf", "meta-llama/Llama-2-7b-hf"),
        ("/data/checkpoints/google/gemma-2b/", "google/gemma-2b"),
        ("meta-llama/Meta-Llama-3-8B", "meta-llama/Meta-Llama-3-8B"),
        ("pythia-1b", "EleutherAI/pythia-1b"),
        ("Llama-3.2-1B", "meta-llama/Llama-3.2-1B"),
        ("my_model", "my_model"),
    ],
)
def test_names(text: str, want: str) -> None:
    """Folders of checkpoints and names of the table."""
    assert name_of(text) == want


def test_a_local_config_wins_over_the_name() -> None:
    """Downloads have the model's own config.json."""
    files = GivenFiles({"checkpoints/a/b/config.json": '{"model_type": "llama", "hidden_size": 64}'})
    found = document(Litgpt().read(launch_of("litgpt finetune_lora checkpoints/a/b", files)))
    assert found["model.hf_config"] == {"model_type": "llama", "hidden_size": 64}
    assert "model.preset" not in found


def test_sizes_in_the_file() -> None:
    """model_config of a pretraining."""
    text = (
        "model_name: micro\ntrain:\n  micro_batch_size: 2\nmodel_config:\n  n_layer: 12\n  n_embd: 1024\n  n_head: 16\n"
        "  n_query_groups: 4\n  intermediate_size: 5632\n  vocab_size: 32000\n  mlp_class_name: LLaMAMLP\n"
    )
    launch = launch_of_file("micro.yaml", text)
    assert Litgpt().recognises(launch)
    found = document(Litgpt().read(launch))
    assert (found["model.transformer.block"], found["model.transformer.layers"], found["model.transformer.vocab_size"]) == (
        "llama",
        12,
        32000,
    )
    assert found["method.name"] == "pretrain"


def test_other_verbs_are_not_ours() -> None:
    """Only what trains."""
    assert not Litgpt().recognises(launch_of("litgpt generate microsoft/phi-2"))
    assert not Litgpt().recognises(launch_of("litgpt"))


NAMES = {row.key for row in (*ROWS, *ADAPTERS)} | set(ADAPTED) | {
    "checkpoint_dir", "model_name", "precision", "quantize", "devices", "num_nodes", "optimizer", "optimizer.class_path",
    "train.global_batch_size",
    "model_config.n_layer", "model_config.mlp_class_name", "train.tie_embeddings", "micro_batch_size",
}  # fmt: skip


@given(settings_over(NAMES), st.lists(st.text(max_size=30), max_size=6))
def test_nothing_stumbles(settings: Settings, words: list[str]) -> None:
    """Any value under any name, any words."""
    read_soundly(Litgpt(), Launch(config=settings, config_file="x.yaml"))
    read_soundly(Litgpt(), launch_of_words(["litgpt", "finetune_lora", *words]))


def test_a_command_without_end_is_read_in_seconds() -> None:
    """Words beyond a limit are not looked at."""
    launch = launch_of_words(["litgpt", "finetune_lora", *(f"--x{index}={index}" for index in range(200_000))])
    assert seconds(Litgpt(), launch) < 2


@pytest.mark.parametrize(
    "command",
    [
        "litgpt finetune_full checkpoints/meta-llama/Llama-2-13b-hf --devices auto --num_nodes 4",
        "litgpt finetune_full checkpoints/meta-llama/Llama-2-13b-hf --devices -1 --num_nodes 4",
        "litgpt pretrain Llama-2-13b-hf",
    ],
)
def test_devices_that_are_counted_at_run_time_are_not_guessed(command: str) -> None:
    """Nothing says how far the model is sharded, unless the submitter does; pretraining counts them unless it is told."""
    (unread,) = read_command(command, GivenFiles({})).unread
    assert "parallelism.world_size" in unread
    told = read_file("job.sh", GivenFiles({"job.sh": f"#PEAKGATE parallelism.world_size=32\n{command}\n"}))
    assert not told.unread
    assert told.get("parallelism.sharding") == "fsdp"


def test_the_optimizer_is_known_without_a_word() -> None:
    """Its default in each script; what four bits take instead is the service's to know."""
    assert read("litgpt finetune_full microsoft/phi-2")["optimizer.name"] == "adamw"
    assert "optimizer.name" not in read(f"{LORA} --quantize bnb.nf4")


def test_devices_that_are_counted_are_those_of_the_node() -> None:
    """Where a scheduler says how many a node has."""
    script = "#!/bin/bash\n#SBATCH --nodes=2 --gres=gpu:h100:4\nlitgpt pretrain pythia-1b --num_nodes 2\n"
    found = read_file("job.sbatch", GivenFiles({"job.sbatch": script}))
    assert (found.get("parallelism.world_size"), found.unread) == (8, [])
