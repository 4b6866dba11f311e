"""Where jobs come from: documents in YAML or JSON, JSON Lines on standard input, launch files and launch commands.

A source yields one `Source` a job, in order; one that cannot be read holds the error in the job's place. The readers of launches are
imported for what is no job document only.
"""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from peakgate.client.checkpoint import Counted, count_of, warn
from peakgate.client.documents import check_size, decoded, documents_of, is_job_document, json_of, resembles, text_of
from peakgate.client.errors import InputError, PeakgateError
from peakgate.client.origin import Origin
from peakgate.v1.document import DocumentError, parse_job, united
from peakgate.v1.prediction_pb2 import PredictResponse
from peakgate.v1.training_job_pb2 import TrainingJob

if TYPE_CHECKING:
    from peakgate.readers.files import Files
    from peakgate.readers.reading import Reading

DOCUMENTS = (".yaml", ".yml", ".json", "")
"""How the name of a job document ends."""

_NAMED_FILES = ("hf_config", "profile")
"""Members of a model that may be the path of a JSON file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchText:
    """A launch with what a reader made of it. `command`: its text when it is a command line, else empty."""

    reading: Reading
    files: Files
    command: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One job of the input, or why it is none. `label` says where it stands, `origin` where each field does that a launch states."""

    label: str
    job: TrainingJob | PeakgateError
    origin: Origin | None = None
    counted: Counted | None = None
    """What the files of a checkpoint hold whose config.json the job names."""
    launch: LaunchText | None = None
    """What it was read from, for whoever writes a suggestion back."""

    def on(self, gpu: str | None) -> Source:
        """The same on the catalogue's card `gpu`, when that is named."""
        origin = self.origin.without("gpu.type", "gpu.memory_bytes") if gpu and self.origin else self.origin
        return replace(self, job=on_gpu(self.job, gpu), origin=origin)

    def checked(self, answer: PredictResponse) -> PredictResponse:
        """The answer, with a warning when the model's config and the files beside it are not of one model."""
        if isinstance(self.job, TrainingJob):
            warn(answer, self.job, self.counted)
        return answer

    def required(self) -> TrainingJob:
        """The job. Raises the error that stands in its place."""
        if isinstance(self.job, PeakgateError):
            raise self.job
        return self.job


def read_sources(paths: Iterable[str], stdin: BinaryIO, command: Sequence[str] = ()) -> Iterator[Source]:
    """The jobs of all `paths` in order; `-` reads one JSON document a line from `stdin`. A launch command is the last."""
    for path in paths:
        if path == "-":
            yield from _json_lines(stdin)
        else:
            yield from _file(Path(path))
    if command:
        from peakgate.client.launches import launch_command

        yield launch_command(command)


def read_source(paths: Sequence[str], stdin: BinaryIO, command: Sequence[str] = ()) -> Source:
    """The only job. Raises InputError when there is none, or are several."""
    sources = list(read_sources(paths, stdin, command))
    if len(sources) != 1:
        raise InputError(f"{' '.join(paths) or 'the command line'} holds {len(sources)} jobs, this command takes one")
    return sources[0]


def read_one(path: str, stdin: BinaryIO, gpu: str | None = None) -> TrainingJob:
    """The only job of `path`, on the card `gpu` when that is named. Raises InputError when it holds none, several or a bad one."""
    return read_source([path], stdin).on(gpu).required()


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
    check_size(line, "the line")
    return json_of(decoded(line, "the line"), "the line")


def _file(path: Path) -> Iterator[Source]:
    try:
        documents = documents_or_launch(path)
    except InputError as error:
        yield Source(label=str(path), job=error)
        return
    if isinstance(documents, Source):
        yield documents
        return
    for number, document in enumerate(documents, start=1):
        label = str(path) if len(documents) == 1 else f"{path} (document {number})"
        yield _source(label, partial(_same, document), path.parent)


def documents_or_launch(path: Path) -> list[object] | Source:
    """The job documents of a file, or else the job of a launch file. Raises InputError that says what was tried."""
    text = text_of(path)
    try:
        documents = documents_of(text, path)
    except InputError as error:
        return _launch_or(path, error)
    if any(is_job_document(each) for each in documents):
        return documents
    try:
        return _launch_or(path, InputError(f"{path} is no job document (the document is empty or no mapping, needs at least `model`)"))
    except InputError:
        if any(resembles(each) for each in documents):
            return documents  # its own error names the fields that are none
        raise


def _launch_or(path: Path, error: InputError) -> Source:
    from peakgate.client.launches import launch_file

    try:
        return launch_file(path)
    except InputError as unread:
        if path.suffix.lower() not in DOCUMENTS:
            raise
        message = f"{error.message}; nor is it a launch file that can be read: {unread.message}"
        raise InputError(message, reason=error.reason, fields=error.fields) from unread


def _same(document: object) -> object:
    return document


def _source(label: str, load: Callable[[], object], folder: Path) -> Source:
    try:
        document = load()
        return Source(label=label, job=job_of(document, folder), counted=_counted(document, folder))
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
    weights = _weights_alone(model, folder)
    if weights is not None:
        return {key: value for key, value in model.items() if key != "hf_config"} | {"parameters": weights.parameters}
    return {key: _named_file(value, folder, f"{path}.{key}", unread) if key in _NAMED_FILES else value for key, value in model.items()}


def _weights_alone(model: Mapping[object, object], folder: Path) -> Counted | None:
    """Of a checkpoint's folder without a config.json the number of its weights is all that can be known."""
    named = model.get("hf_config")
    place = folder / named if isinstance(named, str) else None
    return count_of(place) if place is not None and place.is_dir() and not (place / "config.json").exists() else None


def _counted(document: object, folder: Path) -> Counted | None:
    """What the checkpoint holds whose folder, or config.json, the trained model names."""
    model = document.get("model") if isinstance(document, Mapping) else None
    named = model.get("hf_config") if isinstance(model, Mapping) else None
    if not isinstance(named, str):
        return None
    place = folder / named
    return count_of(place if place.is_dir() else place.parent) if place.is_dir() or place.name == "config.json" else None


def _named_file(value: object, folder: Path, path: str, unread: list[InputError]) -> object:
    if not isinstance(value, str):
        return value
    file = folder / value
    file = file / "config.json" if file.is_dir() else file
    try:
        return json_of(text_of(file), str(file))
    except InputError as error:
        unread.append(InputError(error.message, reason=error.reason, fields=[(path, error.message)]))
        return None
