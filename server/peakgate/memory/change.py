"""A job with some fields changed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, is_dataclass, replace
from typing import Any, get_args, get_type_hints

from peakgate.memory.job import Job

Value = str | int | float | bool | tuple[str, ...]


def with_changes(job: Job, changes: Iterable[tuple[str, Value]]) -> Job:
    """The job with each path set to its value; raises KeyError for a path that is no field."""
    for path, value in changes:
        job = _set(job, path.split("."), value)
    return job


def value_at(job: Job, path: str) -> object:
    """What the job states at a path, or None; raises KeyError for a path that is no field."""
    value: object = job
    for name in path.split("."):
        if value is None:
            return None
        if not is_dataclass(value) or name not in {field.name for field in fields(value)}:
            raise KeyError(path)
        value = getattr(value, name)
    return value


def _set(node: Any, path: list[str], value: Value) -> Any:
    name, rest = path[0], path[1:]
    if name not in {field.name for field in fields(node)}:
        raise KeyError(name)
    if not rest:
        return replace(node, **{name: value})
    child = getattr(node, name)
    if child is None:
        hint = get_type_hints(type(node))[name]
        child = next(each for each in get_args(hint) if isinstance(each, type) and is_dataclass(each))()
    return replace(node, **{name: _set(child, rest, value)})
