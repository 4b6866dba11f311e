"""Where jobs come from: files in YAML or JSON, and JSON Lines on standard input.

A source yields one `Source` a job, in order; one that cannot be read holds the error in the job's place.
"""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import BinaryIO

from peakgate.client.errors import InputError, PeakgateError
from peakgate.v1.document import DocumentError, parse_job, united
from peakgate.v1.json_text import JsonError, read_json
from peakgate.v1.training_job_pb2 import TrainingJob

MAX_DOCUMENT_BYTES = 2**20
"""The service takes no larger message; a job document has a few kilobytes."""

_NAMED_FILES = ("hf_config", "profile")
"""Members of a model that may be the path of a JSON file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One job of the input, or why it is none. `label` says where it stands."""

    label: str
    job: TrainingJob | PeakgateError


def read_sources(paths: Iterable[str], stdin: BinaryIO) -> Iterator[Source]:
    """The jobs of all `paths` in order; `-` reads one JSON document a line from `stdin`."""
    for path in paths:
        if path == "-":
            yield from _json_lines(stdin)
        else:
            yield from _file(Path(path))


def read_one(path: str, stdin: BinaryIO, gpu: str | None = None) -> TrainingJob:
    """The only job of `path`, on the card `gpu` when that is named. Raises InputError when it holds none, several or a bad one."""
    sources = list(read_sources([path], stdin))
    if len(sources) != 1:
        raise InputError(f"{path} holds {len(sources)} jobs, this command takes one")
    job = on_gpu(sources[0].job, gpu)
    if isinstance(job, PeakgateError):
        raise job
    return job


def on_gpu(job: TrainingJob | PeakgateError, gpu: str | None) -> TrainingJob | PeakgateError:
    """The job on the catalogue's card `gpu` instead of the stated one, or what could be read of one; unchanged without a card."""
    readable = job.readable if isinstance(job, InputError) else job
    if gpu and isinstance(readable, TrainingJob):
        readable.gpu.type = gpu
        readable.gpu.ClearField("memory_bytes")  # stated bytes would win over the name
    return job


def _json_lines(stdin: BinaryIO) -> Iterator[Source]:
    for number, line in enumerate(stdin, start=1):
        if line.removeprefix(BOM_UTF8).strip():
            yield _source(f"line {number}", partial(_line, line), Path())


def _line(line: bytes) -> object:
    _check_size(line, "the line")
    return _json(_decoded(line, "the line"), "the line")


def _file(path: Path) -> Iterator[Source]:
    try:
        documents = _documents(_text(path), path)
    except InputError as error:
        yield Source(label=str(path), job=error)
        return
    for number, document in enumerate(documents, start=1):
        label = str(path) if len(documents) == 1 else f"{path} (document {number})"
        yield _source(label, partial(_same, document), path.parent)


def _same(document: object) -> object:
    return document


def _source(label: str, load: Callable[[], object], folder: Path) -> Source:
    try:
        return Source(label=label, job=job_of(load(), folder))
    except PeakgateError as error:
        return Source(label=label, job=error)


def job_of(document: object, folder: Path) -> TrainingJob:
    """The job that a parsed document means; paths in it are relative to `folder`. Raises InputError."""
    if not isinstance(document, Mapping):
        raise InputError("the document is empty or no mapping, needs at least `model`", fields=[("model", "is missing")])
    unread: list[InputError] = []
    try:
        job = parse_job(_with_files(document, folder, unread))
    except DocumentError as error:
        fields = [field for each in unread for field in each.fields]
        if unread and len(united(fields, error.fields)) == len(fields) == 1:
            unread[0].readable = error.job
            raise unread[0] from error
        raise InputError.from_fields(united(fields, error.fields), error.job) from error
    if unread:
        raise InputError.from_fields([field for each in unread for field in each.fields], job)
    return job


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(MAX_DOCUMENT_BYTES + 1)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}", reason="FILE_UNREADABLE") from error
    _check_size(content, str(path))
    return _decoded(content, str(path))


def _check_size(content: bytes, label: str) -> None:
    if len(content) > MAX_DOCUMENT_BYTES:
        raise InputError(f"{label} is larger than {MAX_DOCUMENT_BYTES} bytes, which no job document is", reason="DOCUMENT_TOO_LARGE")


def _decoded(content: bytes, label: str) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{label} is no text in UTF-8 (byte {error.start})") from error


def _documents(text: str, path: Path) -> list[object]:
    if text.lstrip().startswith("{"):
        return [_json(text, str(path))]
    from peakgate.client.yaml_reader import YamlError, load_all

    try:
        return load_all(text) or [None]
    except YamlError as error:
        raise InputError(f"{path} {error}") from error


def _json(text: str, label: str) -> object:
    try:
        return read_json(text)
    except JsonError as error:
        reason = "FIELD_INVALID" if error.fields else "DOCUMENT_INVALID"
        raise InputError(f"{label} {error.message}", reason=reason, fields=error.fields) from error


def _with_files(document: Mapping[str, object], folder: Path, unread: list[InputError]) -> dict[str, object]:
    """The document with the content of the files that its models name, and without those that cannot be read."""
    resolved = dict(document)
    if isinstance(resolved.get("model"), Mapping):
        resolved["model"] = _model_with_files(resolved["model"], folder, "model", unread)
    method = resolved.get("method")
    if isinstance(method, Mapping):
        resolved["method"] = {
            key: _model_with_files(value, folder, f"method.{key}", unread) if key in ("critic", "teacher", "reward") else value
            for key, value in method.items()
        }
    return resolved


def _model_with_files(model: object, folder: Path, path: str, unread: list[InputError]) -> object:
    if not isinstance(model, Mapping):
        return model
    return {key: _named_file(value, folder, f"{path}.{key}", unread) if key in _NAMED_FILES else value for key, value in model.items()}


def _named_file(value: object, folder: Path, path: str, unread: list[InputError]) -> object:
    if not isinstance(value, str):
        return value
    file = folder / value
    file = file / "config.json" if file.is_dir() else file
    try:
        return _json(_text(file), str(file))
    except InputError as error:
        unread.append(InputError(error.message, reason=error.reason, fields=[(path, error.message)]))
        return None
