"""From a command or a script to its reading: what the submitter says itself, and its files."""

from __future__ import annotations

from peakgate.readers.files import GivenFiles
from peakgate.readers.read import read_file

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
