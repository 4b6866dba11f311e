"""Where jobs come from: documents in YAML or JSON, JSON Lines on standard input, launch files and launch commands.

A source yields one `Source` a job, in order; one that cannot be read holds the error in the job's place. The readers of launches are
imported for what is no job document only.
"""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import BinaryIO

from peakgate.client.checkpoint import Counted, count_of
from peakgate.client.documents import check_size, decoded, documents_of, is_job_document, json_of, resembles, text_of
from peakgate.client.errors import InputError, PeakgateError
from peakgate.client.named_files import job_of
from peakgate.client.source import Source
from peakgate.v1.training_job_pb2 import TrainingJob

DOCUMENTS = (".yaml", ".yml", ".json", "")
"""How the name of a job document ends."""


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


def _counted(document: object, folder: Path) -> Counted | None:
    """What the checkpoint holds whose folder, or config.json, the trained model names."""
    model = document.get("model") if isinstance(document, Mapping) else None
    named = model.get("hf_config") if isinstance(model, Mapping) else None
    if not isinstance(named, str):
        return None
    place = folder / named
    return count_of(place if place.is_dir() else place.parent) if place.is_dir() or place.name == "config.json" else None
