"""A job with some fields changed."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import is_dataclass, replace
from functools import lru_cache
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
        if not is_dataclass(value) or name not in value.__dataclass_fields__:
            raise KeyError(path)
        value = getattr(value, name)
    return value


def _set(node: Any, path: list[str], value: Value) -> Any:
    name, rest = path[0], path[1:]
    if name not in node.__dataclass_fields__:
        raise KeyError(name)
    if not rest:
        return replace(node, **{name: value})
    child = getattr(node, name)
    if child is None:
        child = _part(type(node), name)()  # type: ignore[arg-type]  # every node of a job is a dataclass
    return replace(node, **{name: _set(child, rest, value)})


@lru_cache(maxsize=64)
def _part(kind: Hashable, name: str) -> type[Any]:
    """What stands in a field that is not stated."""
    hint = get_type_hints(kind)[name]
    return next(each for each in get_args(hint) if isinstance(each, type) and is_dataclass(each))
