"""From a command or a script to its reading: what the submitter says itself, and its files."""

from __future__ import annotations

import pytest

from peakgate.readers.files import GivenFiles
from peakgate.readers.read import UnreadableError, read_command, read_file

CONFIG = '{"model_type": "llama", "hidden_size": 64}'
SCRIPT = "{own}\npython run_clm.py --do_train --model_name_or_path our/model\n"


def test_a_config_in_the_submitters_words_may_be_a_folder() -> None:
    """Its config.json stands in the place of the launch's own model, whose weights lie in the folder too."""
    files = {"job.sh": SCRIPT.format(own="#PEAKGATE model.hf_config=models/a"), "models/a/config.json": CONFIG}
    found = read_file("job.sh", GivenFiles(files))
    assert found.get("model.hf_config") == {"model_type": "llama", "hidden_size": 64}
    assert found.get("model.preset") is None
    assert (str(found.fields["model.hf_config"].place), found.checkpoint) == ("job.sh:1 #PEAKGATE", "models/a")


def test_a_folder_without_a_config_stays_as_it_was_written() -> None:
    """So that its error names the field."""
    found = read_file("job.sh", GivenFiles({"job.sh": SCRIPT.format(own="#PEAKGATE model.hf_config=models/a")}))
    assert found.get("model.hf_config") == "models/a"


def test_a_reading_knows_what_the_submitter_said_itself() -> None:
    """Everything else is the launch's."""
    found = read_file("job.sh", GivenFiles({"job.sh": SCRIPT.format(own="#PEAKGATE batch.micro_batch_size=3")}))
    assert found.own == {"batch.micro_batch_size"}
    assert found.get("batch.micro_batch_size") == 3


@pytest.mark.parametrize(
    "command",
    [
        'CUDA_VISIBLE_DEVICES="" TRAIN',
        "env CUDA_VISIBLE_DEVICES= TRAIN",
        "export CUDA_VISIBLE_DEVICES=-1; TRAIN",
        "TRAIN --help",
        "TRAIN -h",
        "TRAIN --version --bf16",
    ],
)
def test_a_launch_that_trains_nothing_is_told(command: str) -> None:
    """No GPU is visible to it, or it prints a text and ends."""
    train = "python run_clm.py --model_name_or_path gpt2 --per_device_train_batch_size 1 --block_size 8"
    with pytest.raises(UnreadableError, match=r"run_clm\.py trains nothing: "):
        read_command(command.replace("TRAIN", train), GivenFiles())


@pytest.mark.parametrize(
    "command", ["CUDA_VISIBLE_DEVICES=0 TRAIN", "CUDA_VISIBLE_DEVICES=$GPUS TRAIN", "TRAIN --version 2", "TRAIN --helpful"]
)
def test_what_only_looks_like_it_is_read(command: str) -> None:
    """A device, a variable, a flag with a value, another flag."""
    train = "python run_clm.py --model_name_or_path gpt2 --per_device_train_batch_size 1 --block_size 8"
    assert read_command(command.replace("TRAIN", train), GivenFiles()).get("batch.micro_batch_size") == 1
