"""A parsed document -> the job that it means, with the content of the files that it names (config.json, profile, checkpoint folder)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from peakgate.client.checkpoint import Counted, count_of
from peakgate.client.documents import json_of, text_of
from peakgate.client.errors import InputError
from peakgate.v1.document import DocumentError, parse_job, united
from peakgate.v1.training_job_pb2 import TrainingJob

_NAMED_FILES = ("hf_config", "profile")
"""Members of a model that may be the path of a JSON file."""


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
