"""Jobs from launch files and commands: told from job documents, with places, warnings and what was tried."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from tests.unit.client.service import an_answer

from peakgate.client.asked import jobs_and_command
from peakgate.client.errors import InputError, ServiceError
from peakgate.client.options import Output
from peakgate.client.origin import Origin, placed
from peakgate.client.presenter import Presenter
from peakgate.client.source import Source
from peakgate.client.sources import read_source
from peakgate.readers import read as frame
from peakgate.readers.convert import text, whole
from peakgate.readers.launch import Launch
from peakgate.readers.reading import Reading, Row, apply
from peakgate.v1.training_job_pb2 import TrainingJob

ROWS = (
    Row("model", "model.preset", text),
    Row("b", "batch.micro_batch_size", whole),
    Row("card", "gpu.type", text),
    Row("raw", "batch.sequence_length", text),
)


class ToyReader:
    """A program `toy.py`, or a config with a key `toy`."""

    name = "toy"

    def recognises(self, launch: Launch) -> bool:
        """By its name, or its key."""
        return launch.program == "toy.py" or launch.config.has("toy")

    def read(self, launch: Launch) -> Reading:
        """Three flags; one that no field can say."""
        reading = Reading()
        settings = launch.arguments if launch.words else launch.config
        apply(ROWS, settings, reading)
        if (odd := settings("odd")) is not None:
            reading.cannot_say("odd weights", odd.place)
        if (config := settings("more")) is not None:
            apply(ROWS, launch.settings_of(config.text, reading), reading)
        return reading


@pytest.fixture(autouse=True)
def _one_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frame, "READERS", (ToyReader(),))


def written(folder: Path, text: str, name: str = "job.yaml") -> str:
    """The path of a file with this text."""
    (folder / name).write_text(text)
    return str(folder / name)


def source_of(*paths: str, command: tuple[str, ...] = ()) -> Source:
    """The only job."""
    return read_source(paths, io.BytesIO(), command)


def error_in(source: Source) -> InputError:
    """The error in a job's place."""
    assert isinstance(source.job, InputError), source.job
    return source.job


def test_a_command_is_a_job_with_places() -> None:
    """Each field has the flag that says it; what no field can say goes with the job."""
    source = source_of(command=("torchrun", "toy.py", "--model", "gpt2", "--b", "4", "--odd"))
    job, origin = source.required(), source.origin
    assert (job.model.preset, job.batch.micro_batch_size, list(job.unread)) == ("gpt2", 4, ["odd weights (--odd)"])
    assert origin is not None
    assert (origin.format, origin.places["model.preset"], origin.unread) == ("toy", "--model", ("odd weights (--odd)",))
    assert source.label == "torchrun toy.py --model gpt2 --b 4 --odd"


def test_a_config_file_that_a_reader_knows_is_no_document(tmp_path: Path) -> None:
    """Also with keys that a job document has; its places are lines."""
    path = written(tmp_path, "toy: 1\nmodel: gpt2\nb: 2\nname: x\nloss: y\n")
    source = source_of(path)
    assert source.required().model.preset == "gpt2"
    assert source.origin is not None
    assert source.origin.places["batch.micro_batch_size"] == f"{path}:3 b"


def test_a_script_is_read(tmp_path: Path) -> None:
    """The first launch in it that a reader knows; a file that it names may lie beside it."""
    written(tmp_path, "b: 6\n", "more.yaml")
    path = written(tmp_path, "#!/bin/bash\necho hello\npython toy.py --model gpt2 --more more.yaml\n", "job.sh")
    assert source_of(path).required().batch.micro_batch_size == 6


@pytest.mark.parametrize(
    "text",
    [
        "model: {preset: gpt2}\ntoy: 1\n",
        "model.preset: gpt2\nb: 1\n",
        "name: x\nbatch: {}\n",
    ],
    ids=["a model as a document names it", "by its path", "nothing else"],
)
def test_what_is_meant_as_a_document_is_one(tmp_path: Path, text: str) -> None:
    """A mistyped key is told as before, and no reader is asked."""
    assert source_of(written(tmp_path, text)).origin is None


def test_what_nobody_knows_says_what_was_tried(tmp_path: Path) -> None:
    """Neither a document nor a launch: both are named, and the readers."""
    message = error_in(source_of(written(tmp_path, "learning_rate: 1\n"))).message
    assert "no job document" in message
    assert "none of toy" in message
    script = error_in(source_of(written(tmp_path, "python other.py\n", "job.sh")))
    assert (script.reason, "other.py is none of toy" in script.message) == ("LAUNCH_UNKNOWN", True)
    assert "a line `#PEAKGATE model.preset=NAME`" in script.message
    assert "none of toy" in error_in(source_of(command=("python", "other.py"))).message
    assert "behind --: -- torchrun" in error_in(source_of(written(tmp_path, "import os\nprint(1, [)\n", "other.py"))).message


def test_a_document_of_mistyped_keys_stays_one(tmp_path: Path) -> None:
    """Half of its keys are those of a document: the error names the others."""
    error = error_in(source_of(written(tmp_path, "modle: gpt2\nbatch: {micro_batch_size: 1}\n")))
    assert (error.fields[0][0], "batch") == ("modle", "batch")


def test_a_field_of_the_wrong_type_names_its_place() -> None:
    """The reader's own field that no document takes, with the flag that gave it."""
    (field, description), *_ = error_in(source_of(command=("toy.py", "--raw", "x", "--model", "gpt2"))).fields
    assert field == "batch.sequence_length"
    assert description.endswith("(--raw)")


def test_another_card_takes_the_place_of_the_stated_one() -> None:
    """The flag that named the other card is not blamed for it."""
    source = source_of(command=("toy.py", "--model", "gpt2", "--card", "t4-16gb")).on("h100-80gb")
    assert source.required().gpu.type == "h100-80gb"
    assert source.origin is not None
    assert "gpu.type" not in source.origin.places


def test_what_the_service_refuses_names_its_place(capsys: pytest.CaptureFixture[str]) -> None:
    """Exactly, by the block around it or the first field inside; once, in the block for people and in JSON."""
    origin = Origin(format="toy", places={"gpu.type": "job.sh:3 --card", "lora.targets": "job.sh:4 --targets"})
    fields = [("gpu.type", "is unknown"), ("lora.targets[1]", "is empty"), ("lora", "is odd"), ("name", "is long")]
    error = ServiceError("; ".join(map(": ".join, fields)), code="INVALID_ARGUMENT", reason="FIELD_INVALID", fields=fields)
    want = ["is unknown (job.sh:3 --card)", "is empty (job.sh:4 --targets)", "is odd (job.sh:4 --targets)", "is long"]
    assert [description for _, description in placed(placed(error, origin), origin).fields] == want
    presenter = Presenter(Output.jsonl, brief=False, many=True)
    presenter.show("job", error, origin)
    out, err = capsys.readouterr()
    assert json.loads(out)["error"]["fields"][0]["description"] == want[0]
    assert err.count("job.sh:3 --card") == 1


def test_an_answer_says_what_the_launch_was_read_as(capsys: pytest.CaptureFixture[str]) -> None:
    """Warnings below the answer, and in JSON under `reading`; the answer of a document has neither."""
    origin = Origin(format="toy", places={"gpu.type": "--card"}, warnings=("a and b contradict",))
    for output in (Output.table, Output.json):
        presenter = Presenter(output, brief=False, many=False)
        presenter.show("job", an_answer(), origin)
        presenter.finish()
        out, err = capsys.readouterr()
        assert "Read as toy: 1 field;" in out + err
        assert "a and b contradict" in out + err
    assert json.loads(out)["reading"] == origin.as_dict()
    presenter = Presenter(Output.json, brief=False, many=False)
    presenter.show("job", an_answer())
    presenter.finish()
    assert "reading" not in json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("arguments", "want"),
    [
        (["a.yaml", "b.yaml"], (["a.yaml", "b.yaml"], [])),
        (["--", "torchrun", "toy.py"], ([], ["torchrun", "toy.py"])),
        (["a.yaml", "--", "torchrun", "--b", "1"], (["a.yaml"], ["torchrun", "--b", "1"])),
        (["--", "-odd.yaml", "there.yaml"], (["-odd.yaml", "there.yaml"], [])),
        (["--", "run.sh", "there.yaml"], ([], ["run.sh", "there.yaml"])),
        (["--", "run.sh"], (["run.sh"], [])),
        (["--"], ([], [])),
    ],
)
def test_a_command_stands_behind_two_hyphens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], want: tuple[list[str], list[str]]
) -> None:
    """Files behind them are jobs, unless the first is a program with words of its own."""
    monkeypatch.chdir(tmp_path)
    for name in ("-odd.yaml", "there.yaml", "run.sh"):
        written(tmp_path, "", name)
    words = [each for each in arguments if each != "--"]
    assert jobs_and_command(words, ["peakgate", "predict", *arguments]) == want


def test_a_long_list_of_what_cannot_be_said_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """The service takes 64 KiB."""
    many = Reading(format="toy", unread=["x" * 9999] * 9999)
    monkeypatch.setattr("peakgate.client.launches.read_command", lambda *_: many)
    job = source_of(command=("toy.py",)).job
    readable = job if isinstance(job, TrainingJob) else error_in(source_of(command=("toy.py",))).readable
    assert readable is not None
    assert readable.ByteSize() < 1 << 15
