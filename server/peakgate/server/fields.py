"""The fields of a job as paths, found from its dataclasses, so that a new field needs no list."""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Union, get_args, get_origin, get_type_hints

from peakgate.memory.job import Job


@cache
def numeric_paths() -> Mapping[str, type[int] | type[float]]:
    """Path -> int or float, of every field that is a number. Elements of lists have no path."""
    return {path: kind for path, kind in _walk(Job, "") if kind is int or kind is float}


@cache
def all_paths() -> frozenset[str]:
    """Every field, and every part that holds fields."""
    return frozenset(path for path, _ in _walk(Job, ""))


def _walk(kind: type, prefix: str) -> Iterator[tuple[str, object]]:
    hints = get_type_hints(kind)
    for field in dataclasses.fields(kind):
        inner = _inner(hints[field.name])
        yield prefix + field.name, inner
        if dataclasses.is_dataclass(inner) and isinstance(inner, type):
            yield from _walk(inner, f"{prefix}{field.name}.")


def _inner(hint: object) -> object:
    if get_origin(hint) in (Union, types.UnionType):
        return next(each for each in get_args(hint) if each is not type(None))
    return hint
