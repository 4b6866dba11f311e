"""A suggestion in the job's own syntax."""

from __future__ import annotations

from itertools import permutations

from peakgate.client.source import LaunchText
from peakgate.hooks.change import change_of
from peakgate.readers.files import GivenFiles
from peakgate.readers.read import read_file
from peakgate.v1.prediction_pb2 import Suggestion

SCRIPT = """#!/bin/bash
#SBATCH --gres=gpu:h100:1
accelerate launch sft.py --model_name_or_path Qwen/Qwen2.5-7B --per_device_train_batch_size 4 --max_length 4096 --dataset_name x
"""


def a_suggestion(**changes: str | float | bool) -> Suggestion:
    """A suggestion of these fields, with dots for double underscores."""
    found = Suggestion(title="a change", fits=True)
    for path, value in changes.items():
        target = found.changes[path.replace("__", ".")]
        if isinstance(value, bool):
            target.bool_value = value
        elif isinstance(value, str):
            target.string_value = value
        else:
            target.number_value = value
    return found


def of_script(suggestion: Suggestion) -> str:
    """The change in the script."""
    files = GivenFiles({"jobs/train.sh": SCRIPT})
    return change_of(suggestion, LaunchText(reading=read_file("jobs/train.sh", files), files=files))


def test_flags_are_written_as_the_program_has_them() -> None:
    """With the file in which they stand."""
    assert of_script(a_suggestion(batch__micro_batch_size=1)) == "--per_device_train_batch_size 1 (train.sh)"


def test_several_flags_stand_in_one_order() -> None:
    """A message's map has another one in every process, and what is cut off behind must not be by chance."""
    changes: dict[str, str | float | bool] = {
        "batch__micro_batch_size": 1,
        "batch__gradient_accumulation_steps": 4,
        "loss__implementation": "fused",
    }
    want = "--gradient_accumulation_steps 4 --per_device_train_batch_size 1 --use_liger_kernel (train.sh)"
    for order in permutations(changes):
        assert of_script(a_suggestion(**{path: changes[path] for path in order})) == want


def test_a_switch_stands_without_a_value() -> None:
    """As --gradient_checkpointing does."""
    assert "--gradient_checkpointing" in of_script(a_suggestion(checkpointing__mode="full"))


def test_the_allocators_setting_is_a_variable() -> None:
    """No flag says it."""
    assert of_script(a_suggestion(framework__expandable_segments=True)) == "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"


def test_what_the_launch_has_no_place_for_is_said_in_the_documents_words() -> None:
    """Rather than left out."""
    assert of_script(a_suggestion(parallelism__sharding="fsdp")).endswith("parallelism.sharding: fsdp")


def test_what_the_submitter_sent_needs_no_name() -> None:
    """A Job's own name beside its flag would only crowd out what it comes to."""
    files = GivenFiles({"jobs/train.sh": SCRIPT})
    launch = LaunchText(reading=read_file("jobs/train.sh", files), files=files)
    assert change_of(a_suggestion(batch__micro_batch_size=1), launch, own="jobs/train.sh") == "--per_device_train_batch_size 1"
    assert change_of(a_suggestion(batch__micro_batch_size=1), launch, own="jobs/other.sh").endswith("(train.sh)")
