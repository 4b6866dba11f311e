"""Where jobs come from: files, several documents, JSON Lines, and what is refused with a clear word."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from peakgate.client.documents import MAX_DOCUMENT_BYTES
from peakgate.client.errors import InputError, PeakgateError
from peakgate.client.source import Source, on_gpu
from peakgate.client.sources import read_one, read_sources
from peakgate.v1.training_job_pb2 import TrainingJob

YAML = "name: a\nmodel: {preset: llama-3.1-8b}\n"


def sources_of(tmp_path: Path, text: str, name: str = "job.yaml") -> list[Source]:
    """The sources that a file with this text gives."""
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return list(read_sources([str(path)], io.BytesIO()))


def job_in(source: Source) -> TrainingJob:
    """The job of a source that must be one."""
    assert isinstance(source.job, TrainingJob), source.job
    return source.job


def error_of(tmp_path: Path, text: str, name: str = "job.yaml") -> PeakgateError:
    """The error that a file with this text gives, which is bad input."""
    (source,) = sources_of(tmp_path, text, name)
    assert isinstance(source.job, InputError)
    assert source.job.exit_status == 2
    return source.job


def test_yaml_and_json_say_the_same(tmp_path: Path) -> None:
    """A document means the same job in both forms."""
    (yaml,) = sources_of(tmp_path, YAML)
    (from_json,) = sources_of(tmp_path, json.dumps({"name": "a", "model": {"preset": "llama-3.1-8b"}}), "job.json")
    assert yaml.job == from_json.job


def test_a_file_may_hold_several_documents(tmp_path: Path) -> None:
    """Documents parted by --- are jobs of their own, each with its label."""
    first, second = sources_of(tmp_path, f"{YAML}---\n{YAML.replace('a', 'b', 1)}")
    assert first.label.endswith("(document 1)")
    assert second.label.endswith("(document 2)")
    assert isinstance(second.job, PeakgateError)  # `nbme` is no field: one bad document does not spoil the other
    assert isinstance(first.job, TrainingJob)


def test_json_lines_keep_their_places() -> None:
    """A bad line holds an error in its place; empty lines are no jobs."""
    lines = b'{"model": {"preset": "a"}}\n\n{"model": \n\xff\n[1]\n{"model": {"preset": "b"}}\n'
    sources = list(read_sources(["-"], io.BytesIO(lines)))
    assert [source.label for source in sources] == ["line 1", "line 3", "line 4", "line 5", "line 6"]
    assert [isinstance(source.job, TrainingJob) for source in sources] == [True, False, False, False, True]


def test_not_yaml_names_the_line(tmp_path: Path) -> None:
    """The error says what the parser found and where."""
    error = error_of(tmp_path, "model:\n  preset: [a\nbatch: {}\n")
    assert "is not YAML: line 3" in error.message


def test_not_json_names_the_line(tmp_path: Path) -> None:
    """The same for JSON."""
    assert "is not JSON" in error_of(tmp_path, '{"model": {"preset": "a",}}', "job.json").message


@pytest.mark.parametrize("text", ["model: {preset: a}\nmodel: {preset: b}\n", '{"model": {"preset": "a"}, "model": {"preset": "b"}}'])
def test_a_key_stated_twice_is_refused(tmp_path: Path, text: str) -> None:
    """Both parsers would keep the last one in silence."""
    assert "twice" in error_of(tmp_path, text).message


@pytest.mark.parametrize("name", ["job.yaml", "job.json"])
@pytest.mark.parametrize("value", ["[" * 100_000, "9" * 5000])
def test_what_no_parser_takes_is_said_in_plain_words(tmp_path: Path, name: str, value: str) -> None:
    """Too many levels, too many digits: no word of a parser's inside."""
    message = error_of(tmp_path, f'{{"name": {value}', name).message
    message += error_of(tmp_path, f"name: {value}\n").message
    assert not any(word in message.lower() for word in ("recursion", "sys.", "python", "conversion"))


def test_a_byte_order_mark_is_passed_over(tmp_path: Path) -> None:
    """In a file, and on the first line of JSON Lines; a line of nothing else is no job."""
    (source,) = sources_of(tmp_path, f"\ufeff{YAML}")
    assert job_in(source).name == "a"
    lines = '\ufeff{"model": {"preset": "a"}}\n\ufeff\n'.encode()
    (source,) = read_sources(["-"], io.BytesIO(lines))
    assert job_in(source).model.preset == "a"


def test_files_that_cannot_be_read_are_named_beside_other_bad_fields(tmp_path: Path) -> None:
    """One error for all of them; that a model is missing follows from its file and is not said."""
    error = error_of(tmp_path, "model: {hf_config: nowhere.json}\nmethod: {critic: {profile: nowhere.json}}\ngpus: 8\n")
    assert {path for path, _ in error.fields} == {"model.hf_config", "method.critic.profile", "gpus"}
    assert error.reason == "FIELD_INVALID"


def test_what_could_be_read_goes_with_the_error(tmp_path: Path) -> None:
    """On the card that was asked for, so that the service can check the rest."""
    error = on_gpu(error_of(tmp_path, "model: {preset: a}\nbatch: {micro_batch_size: x}\n"), "t4-16gb")
    assert isinstance(error, InputError)
    assert error.readable is not None
    assert (error.readable.model.preset, error.readable.gpu.type) == ("a", "t4-16gb")


def test_aliases_are_refused(tmp_path: Path) -> None:
    """Nine levels of repeated lists are a billion nodes; the refusal is quick."""
    levels = "".join(f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9) if n else 'x'}]\n" for n in range(12))
    assert "alias" in error_of(tmp_path, levels).message


@pytest.mark.parametrize("text", ["", "# only a comment\n", "- a\n- b\n", "just text\n"])
def test_no_mapping_is_refused(tmp_path: Path, text: str) -> None:
    """An empty file, a list and a text are no jobs, and the error says what a job needs."""
    assert "needs at least `model`" in error_of(tmp_path, text).message


def test_a_large_file_is_refused_unread(tmp_path: Path) -> None:
    """Ten megabytes are no job document."""
    error = error_of(tmp_path, f"name: {'x' * 10 * MAX_DOCUMENT_BYTES}\n")
    assert error.reason == "DOCUMENT_TOO_LARGE"


def test_a_large_line_is_refused() -> None:
    """The limit holds for a line of JSON Lines too."""
    line = b'{"name": "' + b"x" * 2 * MAX_DOCUMENT_BYTES + b'"}\n'
    (source,) = read_sources(["-"], io.BytesIO(line))
    assert isinstance(source.job, InputError)
    assert source.job.reason == "DOCUMENT_TOO_LARGE"


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    """The error names the path and the system's word."""
    (source,) = read_sources([str(tmp_path / "nowhere.yaml")], io.BytesIO())
    assert isinstance(source.job, InputError)
    assert "nowhere.yaml: No such file" in source.job.message


def test_a_config_may_be_a_path(tmp_path: Path) -> None:
    """`model.hf_config` takes the path of a config.json, or of its folder, relative to the job document."""
    (tmp_path / "checkpoint").mkdir()
    (tmp_path / "checkpoint/config.json").write_text('{"model_type": "llama", "hidden_size": 64}')
    for path in ("checkpoint", "checkpoint/config.json"):
        (source,) = sources_of(tmp_path, f"model: {{hf_config: {path}}}\n")
        assert job_in(source).model.hf_config["hidden_size"] == 64


def test_a_critic_may_be_a_path_too(tmp_path: Path) -> None:
    """The same holds for the other models of a method."""
    (tmp_path / "critic.json").write_text('{"model_type": "llama"}')
    (source,) = sources_of(tmp_path, "model: {preset: a}\nmethod: {critic: {hf_config: critic.json}}\n")
    assert job_in(source).method.critic.hf_config["model_type"] == "llama"


def test_a_missing_config_is_a_bad_field(tmp_path: Path) -> None:
    """The error names the field that held the path."""
    error = error_of(tmp_path, "model: {hf_config: nowhere.json}\n")
    assert [path for path, _ in error.fields] == ["model.hf_config"]


def test_another_card_replaces_the_stated_one(tmp_path: Path) -> None:
    """--gpu wins over the document's name and over its bytes."""
    job = read_one(_written(tmp_path, "model: {preset: a}\ngpu: {type: l4-24gb, memory_bytes: 5, count: 2}\n"), io.BytesIO(), "h100-80gb")
    assert job.gpu.type == "h100-80gb"
    assert not job.gpu.HasField("memory_bytes")
    assert job.gpu.count == 2


def test_an_error_passes_the_choice_of_a_card() -> None:
    """An error in a job's place stays what it is."""
    error = InputError("no job")
    assert on_gpu(error, "h100-80gb") is error


def test_a_verb_that_takes_one_job_refuses_two(tmp_path: Path) -> None:
    """The first of two is not silently taken."""
    with pytest.raises(InputError, match="holds 2 jobs"):
        read_one(_written(tmp_path, f"{YAML}---\n{YAML}"), io.BytesIO())


def _written(tmp_path: Path, text: str) -> str:
    path = tmp_path / "one.yaml"
    path.write_text(text)
    return str(path)
