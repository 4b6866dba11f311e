"""What a framework's own program does where a launch says nothing, and when that is no fact."""

from __future__ import annotations

import pytest

from peakgate.memory.choices import CHOICES
from peakgate.memory.favourable import (
    OPEN,
    OPEN_OF_METHODS,
    OPEN_WHEN_CONTEXT_PARALLEL,
    OPEN_WHEN_PARALLEL,
    OPEN_WHEN_TENSOR_PARALLEL,
    WRITTEN_OUT,
)
from peakgate.readers.files import GivenFiles
from peakgate.readers.own_defaults import CONDITIONS, OWN, Own
from peakgate.readers.place import DEFAULT
from peakgate.readers.read import read_command, read_file
from peakgate.readers.reading import Reading

LEFT_OPEN = {path for path, _ in (*OPEN, *OPEN_OF_METHODS, *OPEN_WHEN_PARALLEL, *OPEN_WHEN_TENSOR_PARALLEL, *OPEN_WHEN_CONTEXT_PARALLEL)}
OTHERS = {"optimizer.in_backward"}
"""Open in frameworks that have it (favourable.STEPS_IN_BACKWARD)."""

MODE = "checkpointing.mode"
GPT = "pretrain_gpt.py --num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 128 --micro-batch-size 1"
TUNED = "base_model: Qwen/Qwen2.5-7B\nmicro_batch_size: 2\nsequence_len: 4096\n"


def command(words: str, **files: str) -> Reading:
    """What a command says."""
    return read_command(words, GivenFiles(files))


def config(text: str) -> Reading:
    """What a config of Axolotl says."""
    return read_file("config.yml", GivenFiles({"config.yml": text}))


@pytest.mark.parametrize("row", OWN, ids=lambda row: f"{row.table}-{row.path}-{row.when}")
def test_a_row_closes_what_the_server_holds_open(row: Own) -> None:
    """No other field; with a word of the document's, a condition that there is, and a source."""
    assert row.path in LEFT_OPEN | OTHERS
    assert isinstance(row.value, bool) or row.value in CHOICES[row.path]
    assert set(row.when.split(" + ")) <= set(CONDITIONS)
    assert row.source


def test_no_row_stands_twice() -> None:
    """A table, a field and a condition say one thing."""
    keys = [(row.table, row.path, row.when) for row in OWN]
    assert len(keys) == len(set(keys))


def test_every_condition_is_used() -> None:
    """None is left over from a row that is gone."""
    assert {word for row in OWN for word in row.when.split(" + ")} == set(CONDITIONS)


def test_what_a_program_of_its_own_leaves_out_is_its_default() -> None:
    """With the framework's file and symbol for a place."""
    stated = command(f"torchrun {GPT}").fields[MODE]
    assert (stated.value, stated.place.kind) == ("none", DEFAULT)
    assert str(stated.place) == "default of Megatron-LM (training/arguments.py: --recompute-granularity is None)"


def test_what_is_said_decides() -> None:
    """By today's name and by an earlier one."""
    assert command(f"torchrun {GPT} --recompute-activations").get(MODE) == "selective"
    assert command(f"torchrun {GPT} --checkpoint-activations").get(MODE) == "full"


@pytest.mark.parametrize("word", ["false", "False", "off"])
def test_a_switch_that_is_off_is_the_place(word: str) -> None:
    """It says what the default says."""
    stated = config(f"{TUNED}gradient_checkpointing: {word}\n").fields[MODE]
    assert (stated.value, str(stated.place)) == ("none", "config.yml:4 gradient_checkpointing")


def test_an_unknown_word_decides_something() -> None:
    """A variable that nobody has set may be a yes; null is none."""
    assert config(TUNED + "gradient_checkpointing: ${GC}\n").get(MODE) is None
    assert config(TUNED + "gradient_checkpointing:\n").get(MODE) == "none"
    assert config(TUNED + "gradient_checkpointing: unsloth\n").get(MODE) is None


@pytest.mark.parametrize(
    "words",
    [
        "torchrun train.py --model_name_or_path gpt2 --per_device_train_batch_size 4 --output_dir out",
        "torchrun my_gpt.py --num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length 128 --micro-batch-size 1",
        "torchrun train_dpo.py --model_name_or_path gpt2 --max_length 512 --per_device_train_batch_size 4 --attn_implementation sdpa",
        "deepspeed train.py --deepspeed_config ds.json --num_layers 2",
    ],
)
def test_a_script_of_somebodys_own_leaves_it_open(words: str) -> None:
    """It may have decided without a word: its name and its flags look like a framework's, and it is none."""
    found = command(words, **{"ds.json": '{"train_micro_batch_size_per_gpu": 1}'})
    for path in ("loss.implementation", "optimizer.name"):
        assert found.get(path) is None


@pytest.mark.parametrize(
    ("words", "want"),
    [
        (f"torchrun {GPT} --lr $LR --bf16", "none"),
        (f"torchrun {GPT} $MORE", None),
        (f"torchrun {GPT} --lr $(cat rate) --bf16", "none"),
        (f"torchrun {GPT} $(cat more)", None),
    ],
)
def test_words_that_are_not_known_may_decide(words: str, want: str | None) -> None:
    """A variable that stands for one value does not, one that may stand for flags does."""
    assert command(words).get(MODE) == want


def test_a_file_that_is_not_there_may_decide() -> None:
    """Everything may stand in it."""
    assert command("axolotl train nowhere.yml").get("optimizer.name") is None
    assert command("torchrun -m axolotl.cli.train c.yml", **{"c.yml": TUNED}).get("optimizer.name") == "adamw"


@pytest.mark.parametrize("words", ["$ARGS", "${ARGS}", '"${ARGS[@]}"', '"${SIZES[@]}"'])
def test_a_sourced_file_that_is_not_there_may_hold_flags(words: str) -> None:
    """Without it, a variable that nobody sets is no words."""
    script = f"source flags.sh\ntorchrun {GPT} {words}\n"
    assert read_file("job.sh", GivenFiles({"job.sh": script})).get(MODE) is None
    assert read_file("job.sh", GivenFiles({"job.sh": script, "flags.sh": "ARGS=--bf16\nSIZES=(--bf16)\n"})).get(MODE) == "none"
    assert read_file("job.sh", GivenFiles({"job.sh": script.replace("flags.sh", "~/venv/bin/activate")})).get(MODE) == "none"


@pytest.mark.parametrize(
    ("model", "want"), [("Qwen/Qwen3-4B", "sdpa"), ("google/gemma-2b", "sdpa"), ("google/gemma-2-2b", None), ("openai/gpt-oss-20b", None)]
)
def test_models_for_which_attention_is_chosen_by_what_is_installed(model: str, want: str | None) -> None:
    """LLaMA-Factory takes another kernel for them where there is one."""
    text = f"stage: sft\nmodel_name_or_path: {model}\nfinetuning_type: lora\ncutoff_len: 1024\nflash_attn: auto\n"
    assert read_file("sft.yaml", GivenFiles({"sft.yaml": text})).get("attention.implementation") == want


def test_ranks_without_sharding_hold_copies() -> None:
    """Under torchrun; accelerate may have a config in the submitter's home."""
    words = "-m axolotl.cli.train c.yml"
    assert command(f"torchrun --nproc_per_node 4 {words}", **{"c.yml": TUNED}).get("parallelism.sharding") == "ddp"
    assert command(f"accelerate launch --num_processes 4 {words}", **{"c.yml": TUNED}).get("parallelism.sharding") is None


def test_a_checkpoint_in_float32_stays_so() -> None:
    """An example script that says nothing of formats, and is not behind accelerate."""
    words = "run_mlm.py --model_name_or_path roberta-large --per_device_train_batch_size 8"
    assert command(f"python {words}").get("precision.recipe") == "fp32"
    assert command(f"accelerate launch {words}").get("precision.recipe") is None
    assert command(f"python {words} --bf16").get("precision.recipe") == "amp-bf16"
    assert command("python run_clm.py --model_name_or_path Qwen/Qwen2.5-0.5B").get("precision.recipe") is None


def test_what_the_server_knows_to_be_written_out_is_a_field_it_holds_open() -> None:
    """The names in both lists are the same fields."""
    assert set(WRITTEN_OUT) <= LEFT_OPEN
