"""Job documents as text: YAML or JSON of a size that one has, and how one is told from the config file of something else."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from peakgate.client.errors import InputError
from peakgate.v1.json_text import JsonError, read_json
from peakgate.v1.training_job_pb2 import Model, TrainingJob

MAX_DOCUMENT_BYTES = 2**20
"""The service takes no larger message; a job document has a few kilobytes."""


def text_of(path: Path) -> str:
    """The text of a file. Raises InputError."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_DOCUMENT_BYTES + 1)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}", reason="FILE_UNREADABLE") from error
    check_size(content, str(path))
    return decoded(content, str(path))


def check_size(content: bytes, label: str) -> None:
    """Raises InputError for what is larger than a job document."""
    if len(content) > MAX_DOCUMENT_BYTES:
        raise InputError(f"{label} is larger than {MAX_DOCUMENT_BYTES} bytes, which no job document is", reason="DOCUMENT_TOO_LARGE")


def decoded(content: bytes, label: str) -> str:
    """Text in UTF-8. Raises InputError."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{label} is no text in UTF-8 (byte {error.start})") from error


def documents_of(text: str, path: Path) -> list[object]:
    """The documents of a text; one that is empty is None. Raises InputError."""
    if text.lstrip().startswith("{"):
        return [json_of(text, str(path))]
    from peakgate.client.yaml_reader import YamlError, load_all

    try:
        return load_all(text) or [None]
    except YamlError as error:
        raise InputError(f"{path} {error}") from error


def json_of(text: str, label: str) -> object:
    """A JSON value. Raises InputError."""
    try:
        return read_json(text)
    except JsonError as error:
        reason = "FIELD_INVALID" if error.fields else "DOCUMENT_INVALID"
        raise InputError(f"{label} {error.message}", reason=reason, fields=error.fields) from error


def is_job_document(document: object) -> bool:
    """Whether data is meant as a job document: it names a model as one does, or nothing that is none of its fields."""
    if not isinstance(document, Mapping) or not document:
        return False
    heads = {str(key).partition(".")[0] for key in document}
    return _names_model(document) or heads <= _fields()


def _names_model(document: Mapping[object, object]) -> bool:
    model, kinds = document.get("model"), set(Model.DESCRIPTOR.fields_by_name)
    dotted = any(f"model.{kind}" in document for kind in kinds)
    return dotted or (isinstance(model, Mapping) and not kinds.isdisjoint(map(str, model)))


def resembles(document: object) -> bool:
    """Half of its keys are fields of a job document."""
    return isinstance(document, Mapping) and 2 * sum(str(key).partition(".")[0] in _fields() for key in document) >= len(document) > 0


def _fields() -> set[str]:
    return set(TrainingJob.DESCRIPTOR.fields_by_name)
