"""Plain loops: only what a flag's name makes certain."""

from __future__ import annotations

import pytest
from tests.unit.readers.trainer_launch import a_launch

from peakgate.readers.files import GivenFiles
from peakgate.readers.plain import Plain
from peakgate.readers.read import UnreadableError, read_file
from peakgate.readers.reading import Reading

READER = Plain()


def read(flags: str) -> Reading:
    """The reading of a loop around GPT-2."""
    return READER.read(a_launch(f"torchrun --nproc_per_node 2 train.py --model gpt2 --batch_size 4 {flags}"))


@pytest.mark.parametrize(
    ("flags", "want"),
    [
        ("--bf16", "amp-bf16"),
        ("--mixed_precision fp16", "amp-fp16"),
        ("--dtype bfloat16", "bf16"),
        ("--dtype float32", "fp32"),
        ("--bf16 --fsdp", "fsdp-bf16"),
        ("--precision 16", None),
        ("--amp", "amp-fp16"),
        ("--amp --dtype bfloat16", "bf16"),
        ("--bf16 False", None),
    ],
)
def test_precision(flags: str, want: str | None) -> None:
    """A switch is autocast, a format the parameters'."""
    assert read(flags).get("precision.recipe") == want


def test_a_format_that_may_be_either_is_a_warning() -> None:
    """Float16 parameters alone cannot be trained without more."""
    found = read("--dtype float16")
    assert found.get("precision.recipe") is None
    assert len(found.warnings) == 1


@pytest.mark.parametrize(
    ("flags", "want"),
    [("--lora_r 8", "huggingface"), ("--attn_implementation sdpa", "huggingface"), ("--lr 1e-4", "torch")],
)
def test_the_framework_is_torch_unless_flags_are_of_transformers(flags: str, want: str) -> None:
    """Loops around transformers' models have their flags."""
    assert read(flags).get("framework.name") == want


@pytest.mark.parametrize(
    ("command", "want"),
    [
        ("python train.py --model gpt2 --batch_size 4", True),
        ("python train.py --model gpt2", False),
        ("python train.py --batch_size 4", False),
        ("python preprocess.py --model gpt2 --max_length 100", False),
        ("python evaluate_train.py --model gpt2 --max_length 100", False),
        ("python train_and_test.py --model gpt2 --max_length 100", True),
        ("", False),
        ("python run_clm.py --model_name_or_path gpt2 --block_size 512 --do_eval", False),
        ("python train.py --model gpt2 --block_size 512 --do_train false --do_eval", False),
        ("python train.py --model gpt2 --block_size 512 --do_eval", True),
    ],
)
def test_what_is_recognised(command: str, want: bool) -> None:
    """A model with a batch or a length, in a program that may train."""
    assert READER.recognises(a_launch(command)) is want


def test_an_optimizer_without_a_name_here_is_left_open() -> None:
    """A plain SGD may have momentum or not."""
    assert read("--optimizer sgd").get("optimizer.name") is None
    found = read("--optimizer adamw --fused")
    assert (found.get("optimizer.name"), found.get("optimizer.implementation")) == ("adamw", "fused")


def test_a_loop_under_accelerate_is_placed_by_it() -> None:
    """FSDP and precision of accelerate's file, in whose library the loop runs."""
    text = "distributed_type: FSDP\nmixed_precision: bf16\nfsdp_config:\n  fsdp_version: 2\n"
    launch = a_launch("accelerate launch --config_file a.yaml train.py --model m --batch_size 4", {"a.yaml": text})
    found = READER.read(launch)
    assert (found.get("framework.name"), found.get("parallelism.sharding")) == ("huggingface", "fsdp")
    assert (found.get("precision.recipe"), found.get("framework.fsdp.version")) == ("fsdp-bf16", 2)


@pytest.mark.parametrize(("verb", "want"), [("export", False), ("deploy", False), ("infer", False), ("train", True), ("", True)])
def test_a_tool_that_does_something_else_is_not_known(verb: str, want: bool) -> None:
    """By the word behind it."""
    assert READER.recognises(a_launch(f"tool {verb} --model gpt2 --max_length 2048")) is want


def test_a_model_that_the_submitter_names_beside_the_launch_is_enough() -> None:
    """The flags of a script of one's own are read as soon as a line says what it trains."""
    text = "#!/bin/bash\n#PEAKGATE model.preset=gpt2-xl\ntorchrun --nproc_per_node 4 train.py --batch-size 4 --seq-len 2048 --n_layer 48\n"
    found = read_file("job.sh", GivenFiles({"job.sh": text}))
    want = {"model.preset": "gpt2-xl", "batch.micro_batch_size": 4, "batch.sequence_length": 2048, "parallelism.world_size": 4}
    assert {path: found.get(path) for path in want} == want
    with pytest.raises(UnreadableError):
        read_file("job.sh", GivenFiles({"job.sh": text.replace("#PEAKGATE", "#")}))
